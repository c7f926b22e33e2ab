//! The uses, on bare words: a rename (firm), a link (revocable), and a change of marked words.
//! `RUSTFLAGS="--cfg loom" cargo test -p commit --release --test models`.
#![cfg(any(loom, shuttle))]

use std::sync::Arc;

use commit::{Decisions, Look, Observed, Owner, Precedence, Stance, Tag};
use percpu::model::ModelArena;
use sync::atomic::{AtomicU64, Ordering};

const ABSENT: u64 = 0;
const PRESENT: u64 = 1;

/// A name that is absent, present, or depends on an operation.
struct Name {
    state: AtomicU64,
}

impl Name {
    fn new(state: u64) -> Arc<Name> {
        Arc::new(Name { state: AtomicU64::new(state) })
    }

    /// Appears (`PRESENT` as the kind) or disappears (`ABSENT`) when the operation commits.
    fn mark(&self, tag: Tag, to: u64) {
        self.state.store(tag.to_bits() << 2 | 2 | to, Ordering::Release);
    }

    fn settle(&self, to: u64) {
        self.state.store(to, Ordering::Release);
    }

    fn exists(&self, decisions: &Decisions) -> bool {
        self.exists_for(decisions, commit::Anyone)
    }

    fn exists_for(&self, decisions: &Decisions, viewer: impl commit::Viewer) -> bool {
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state & 2 == 0 {
                return state == PRESENT;
            }
            let appears = state & 1 == PRESENT;
            match decisions.observe_by(Tag::from_bits(state >> 2).unwrap(), viewer) {
                Observed::Committed => return appears,
                Observed::NotCommitted => return !appears,
                Observed::Over => sync::Wait::wait(&sync::Spin, sync::WaitReason::Operation, 0),
            }
        }
    }
}

/// rename(a, b) against an observer of b and then a: it may not see both, and having seen b it must not see a.
fn rename(renamer_first: bool) {
    let model = ModelArena::new(2, 128 << 10);
    let decisions = Decisions::create(model.arena()).unwrap();
    let (a, b) = (Name::new(PRESENT), Name::new(ABSENT));
    let core = model.core(0);
    let renamer = {
        let (a, b) = (Arc::clone(&a), Arc::clone(&b));
        move || {
            let operation = decisions.begin_firm(&core);
            if sync::mutant::planted("commit: rename without marks") {
                b.settle(PRESENT);
                a.settle(ABSENT);
                return;
            }
            a.mark(operation.tag(), ABSENT);
            b.mark(operation.tag(), PRESENT);
            operation.commit().unwrap();
            b.settle(PRESENT);
            a.settle(ABSENT);
        }
    };
    let observer = move || {
        let b_seen = b.exists(decisions);
        let a_seen = a.exists(decisions);
        assert!(!(b_seen && a_seen), "both names at once");
    };
    sync::model::both(renamer_first, renamer, observer);
}

/// link(a, b) against unlink(a) and then a look at b. If the link succeeds, it came before the unlink, so b is there.
fn link(linker_first: bool) {
    let model = ModelArena::new(2, 128 << 10);
    let decisions = Decisions::create(model.arena()).unwrap();
    let (a, b) = (Name::new(PRESENT), Name::new(ABSENT));
    let (zero, one) = (model.core(0), model.core(1));
    let linked = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let linker = {
        let (a, b, linked) = (Arc::clone(&a), Arc::clone(&b), Arc::clone(&linked));
        move || {
            loop {
                let operation = decisions.begin_revocable(&zero);
                b.mark(operation.tag(), PRESENT);
                operation.fence_before_check();
                if !a.exists(decisions) {
                    operation.abort();
                    b.settle(ABSENT);
                    return;
                }
                if operation.commit().is_ok() {
                    b.settle(PRESENT);
                    linked.store(true, std::sync::atomic::Ordering::Relaxed);
                    return;
                }
            }
        }
    };
    let b_after_unlink = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let unlinker = {
        let (b, b_after_unlink) = (Arc::clone(&b), Arc::clone(&b_after_unlink));
        move || {
            let operation = decisions.begin_firm(&one);
            a.mark(operation.tag(), ABSENT);
            operation.commit().unwrap();
            a.settle(ABSENT);
            b_after_unlink.store(b.exists(decisions), std::sync::atomic::Ordering::Relaxed);
        }
    };
    sync::model::both(linker_first, linker, unlinker);
    let linked = linked.load(std::sync::atomic::Ordering::Relaxed);
    let seen = b_after_unlink.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(linked, seen, "the link succeeded, but b was absent after a was unlinked");
    assert_eq!(b.exists(decisions), linked);
}

/// Two cores that each create a name and then look for the other's: one of them must find it.
fn create_and_look(first: bool) {
    let model = ModelArena::new(2, 128 << 10);
    let decisions = Decisions::create(model.arena()).unwrap();
    let names = [Name::new(ABSENT), Name::new(ABSENT)];
    let found = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let role = |mine: usize| {
        let (names, found, core) = (names.clone(), Arc::clone(&found), model.core(mine));
        move || {
            let operation = decisions.begin_firm(&core);
            names[mine].mark(operation.tag(), PRESENT);
            operation.commit().unwrap();
            names[mine].settle(PRESENT);
            found.fetch_add(usize::from(names[1 - mine].exists(decisions)), std::sync::atomic::Ordering::Relaxed);
        }
    };
    let (a, b) = (role(0), role(1));
    sync::model::both(first, a, b);
    assert!(found.load(std::sync::atomic::Ordering::Relaxed) >= 1, "both creations came after the other's look");
}

impl Name {
    /// The mark of an operation by which it appears or disappears; false if it was not as that takes it to be.
    fn mark_if_as_before(&self, tag: Tag, to: u64) -> bool {
        let mark = tag.to_bits() << 2 | 2 | to;
        self.state.compare_exchange(1 - to, mark, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Replaces the mark, unless somebody else was quicker.
    fn replace_mark(&self, tag: Tag, to: u64, state: u64) {
        let mark = tag.to_bits() << 2 | 2 | to;
        let _ = self.state.compare_exchange(mark, state, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// As a reader sees it, who revokes nothing.
    fn is_seen(&self, decisions: &Decisions) -> bool {
        loop {
            let state = self.state.load(Ordering::SeqCst);
            if state & 2 == 0 {
                return state == PRESENT;
            }
            let appears = state & 1 == PRESENT;
            match decisions.look(Tag::from_bits(state >> 2).unwrap()) {
                Look::Committed => return appears,
                Look::Undecided | Look::Aborted => return !appears,
                Look::Over => sync::Wait::wait(&sync::Spin, sync::WaitReason::Operation, 0),
            }
        }
    }
}

/// a disappears and b appears, both marked, with a reader of b and then a, or of a and then b, who waits for no one: it
/// sees exactly one of them, or what was before and then what came after.
fn marked(operation_first: bool, b_first: bool) {
    let model = ModelArena::new(2, 128 << 10);
    let decisions = Decisions::create(model.arena()).unwrap();
    let (a, b) = (Name::new(PRESENT), Name::new(ABSENT));
    let core = model.core(0);
    let operation = {
        let (a, b) = (Arc::clone(&a), Arc::clone(&b));
        move || {
            let operation = decisions.begin_marked(&core, Precedence(0));
            let tag = operation.tag();
            assert!(a.mark_if_as_before(tag, ABSENT) && b.mark_if_as_before(tag, PRESENT));
            operation.commit().expect("readers revoke nothing");
            a.replace_mark(tag, ABSENT, ABSENT);
            b.replace_mark(tag, PRESENT, PRESENT);
        }
    };
    let reader = move || {
        let first = if b_first { &b } else { &a }.is_seen(decisions);
        let second = if b_first { &a } else { &b }.is_seen(decisions);
        match b_first {
            true => assert!(!(first && second), "both at once"),
            false => assert!(first || second, "none of both"),
        }
    };
    sync::model::both(operation_first, operation, reader);
}

/// An operation makes a disappear, and a writer needs a: it revokes the operation, or finds it decided. One of them has a.
fn marked_and_revoked(operation_first: bool) {
    let model = ModelArena::new(2, 128 << 10);
    let decisions = Decisions::create(model.arena()).unwrap();
    let a = Name::new(PRESENT);
    let core = model.core(0);
    let operation = {
        let a = Arc::clone(&a);
        move || {
            let operation = decisions.begin_marked(&core, Precedence(0));
            if !a.mark_if_as_before(operation.tag(), ABSENT) {
                operation.abort();
                return false;
            }
            let has_happened = operation.commit().is_ok();
            a.replace_mark(operation.tag(), ABSENT, if has_happened { ABSENT } else { PRESENT });
            has_happened
        }
    };
    let writer = move || {
        loop {
            match a.state.compare_exchange(PRESENT, ABSENT, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(ABSENT) => return false,
                Err(mark) => {
                    let tag = Tag::from_bits(mark >> 2).unwrap();
                    match decisions.look(tag) {
                        Look::Undecided => decisions.revoke(tag),
                        Look::Committed => a.replace_mark(tag, ABSENT, ABSENT),
                        Look::Aborted => a.replace_mark(tag, ABSENT, PRESENT),
                        Look::Over => {}
                    }
                }
            }
        }
    };
    let (has_happened, has_taken) = sync::model::both(operation_first, operation, writer);
    assert!(has_happened != has_taken, "operation: {has_happened}, writer: {has_taken}");
}

#[test]
fn marked_operations() {
    for first in [false, true] {
        for b_first in [false, true] {
            sync::model::explore(3, 10, move || marked(first, b_first));
        }
        sync::model::explore(3, 10, move || marked_and_revoked(first));
        sync::model::must_catch("commit: a revoked operation commits", 3, move || marked_and_revoked(first));
    }
}

#[test]
fn firm() {
    for first in [false, true] {
        sync::model::explore(3, 20, move || rename(first));
        sync::model::must_catch("commit: rename without marks", 3, move || rename(first));
        sync::model::explore(3, 20, move || create_and_look(first));
        sync::model::must_catch_reordering("commit: no fence after the decision", 3, move || create_and_look(first));
    }
}

#[test]
fn revocable() {
    for first in [false, true] {
        sync::model::explore(3, 50, move || link(first));
        sync::model::must_catch("commit: observers do not revoke", 3, move || link(first));
        for mutant in ["commit: no fence before the check", "commit: no fence after the decision"] {
            sync::model::must_catch_reordering(mutant, 3, move || link(first));
        }
    }
}

/// Two transactions, each of which makes its name if the other's is not there: not both do, and with these one does.
fn skew(first: bool, stances: [Stance; 2]) {
    let model = ModelArena::new(2, 128 << 10);
    let decisions = Decisions::create(model.arena()).unwrap();
    let names = [Name::new(ABSENT), Name::new(ABSENT)];
    let made = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let role = |mine: usize| {
        let (names, made, core) = (names.clone(), Arc::clone(&made), model.core(mine));
        move || {
            let mut operation = decisions.begin_firm(&core);
            names[mine].mark(operation.tag(), PRESENT);
            let happened = loop {
                operation.open(Precedence(0), stances[mine]);
                if names[1 - mine].exists_for(decisions, Owner(core.index())) {
                    operation.abort();
                    break false;
                }
                if operation.commit().is_ok() {
                    break true;
                }
            };
            names[mine].settle(if happened { PRESENT } else { ABSENT });
            made.fetch_add(usize::from(happened), std::sync::atomic::Ordering::Relaxed);
        }
    };
    let (a, b) = (role(0), role(1));
    sync::model::both(first, a, b);
    assert_eq!(made.load(std::sync::atomic::Ordering::Relaxed), 1, "each has made a name that the other did not see");
}

/// A plain creation and a look at the other name, with a transaction that makes that if it does not see the first.
fn open_beside_plain(first: bool, stance: Stance) {
    let model = ModelArena::new(2, 128 << 10);
    let decisions = Decisions::create(model.arena()).unwrap();
    let names = [Name::new(ABSENT), Name::new(ABSENT)];
    let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let transaction = {
        let (names, seen, core) = (names.clone(), Arc::clone(&seen), model.core(0));
        move || {
            let mut operation = decisions.begin_firm(&core);
            names[0].mark(operation.tag(), PRESENT);
            let happened = loop {
                operation.open(Precedence(0), stance);
                if names[1].exists_for(decisions, Owner(core.index())) {
                    operation.abort();
                    break false;
                }
                if operation.commit().is_ok() {
                    break true;
                }
            };
            names[0].settle(if happened { PRESENT } else { ABSENT });
            seen.fetch_add(usize::from(!happened), std::sync::atomic::Ordering::Relaxed);
        }
    };
    let plain = {
        let (names, seen, core) = (names.clone(), Arc::clone(&seen), model.core(1));
        move || {
            let operation = decisions.begin_firm(&core);
            names[1].mark(operation.tag(), PRESENT);
            operation.commit().unwrap();
            names[1].settle(PRESENT);
            seen.fetch_add(usize::from(names[0].exists(decisions)), std::sync::atomic::Ordering::Relaxed);
        }
    };
    sync::model::both(first, transaction, plain);
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 1, "exactly one comes first");
}

#[test]
fn open() {
    for first in [false, true] {
        for stance in [Stance::Yields, Stance::Insists] {
            sync::model::explore(3, 20, move || open_beside_plain(first, stance));
        }
        sync::model::explore(2, 20, move || skew(first, [Stance::Yields, Stance::Yields]));
        sync::model::explore(2, 20, move || skew(first, [Stance::Insists, Stance::Yields]));
        let beside_plain = move || open_beside_plain(first, Stance::Yields);
        sync::model::must_catch("commit: observers do not revoke", 3, beside_plain);
        sync::model::must_catch_reordering("commit: no fence after opening", 3, beside_plain);
    }
}
