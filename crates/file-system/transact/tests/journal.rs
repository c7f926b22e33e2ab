//! What a journal gets: what transactions do, in an order in which it can be done again.
#![cfg(not(any(loom, shuttle)))]

use std::cell::RefCell;
use std::io::{self, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use posix_calls::{AttributeChange, Kind, PermissionChange};
use scalefs::{FileSystem, OwnedConfig};
use transact::{Changes, Journal, Participant, Refused, journaled};

fn files() -> FileSystem {
    FileSystem::create(OwnedConfig { core_count: 4, ..OwnedConfig::default() }).unwrap()
}

/// Writes down in words what it gets, and what it is asked to wait for.
#[derive(Default)]
struct Words {
    next: AtomicU64,
    kept: Mutex<Vec<(u64, String)>>,
    waited: Mutex<Vec<u64>>,
}

impl Journal for Words {
    fn take_place(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn keep(&self, place: u64, changes: &Changes<'_>) {
        let mut words = String::new();
        for name in changes.names() {
            let sign = if name.after.is_some() { '+' } else { '-' };
            words += &format!("{sign}{} ", String::from_utf8_lossy(name.name));
        }
        for object in changes.objects() {
            if let Some(made) = object.made {
                words += &format!("{:?} {:o} ", made.kind, made.permissions.mode);
                assert_eq!(made.kind == Kind::Symlink, !made.target.is_empty());
            }
            if object.data.is_changed() {
                let writes: Vec<_> = object.data.writes().map(|(offset, bytes)| (offset, bytes.len())).collect();
                words += &format!("{:?} {writes:?} {:?} ", object.data.cut_to(), object.data.size_bytes());
            }
            for change in object.attributes {
                if let AttributeChange::Permissions(PermissionChange::Mode(mode)) = change {
                    words += &format!("mode {mode:o} ");
                    assert!(object.touched.is_some());
                }
            }
        }
        assert!(changes.moment_ns().is_some());
        self.kept.lock().unwrap().push((place, words.trim().into()));
    }

    fn give_back(&self, place: u64) {
        self.kept.lock().unwrap().push((place, "nothing".into()));
    }

    fn wait(&self, place: u64) -> io::Result<()> {
        self.waited.lock().unwrap().push(place);
        if place == 7 { Err(io::Error::other("no room")) } else { Ok(()) }
    }
}

#[test]
fn a_journal_gets_what_transactions_do() {
    let (files, words) = (files(), Words::default());
    let run = |body: &dyn Fn(&transact::Scope<'_>) -> io::Result<()>| journaled(&files, &words, |t| body(t));
    run(&|t| {
        t.create_dir("d")?;
        t.write("f", "12345")?;
        t.symlink("there", "link")
    })
    .unwrap();
    run(&|t| {
        t.rename("f", "d/g")?;
        t.write_at("d/g", "abc", 3)?;
        t.set_mode("d", 0o700)
    })
    .unwrap();
    run(&|t| t.set_len("d/g", 2)).unwrap();
    run(&|t| t.exists("d").map(drop)).unwrap();
    assert!(run(&|t| t.create("d")).is_err());
    // What is made and removed again is none of its names.
    run(&|t| t.create("made").and_then(|()| t.remove_file("made"))).unwrap();
    run(&|t| t.remove_file("link")).unwrap();
    let hears = RefCell::new(Vec::new());
    let failed = journaled(&files, &words, |t| {
        t.on_commit(|| hears.borrow_mut().push("commit"));
        t.on_abort(|| hears.borrow_mut().push("abort"));
        t.create("last")
    });
    assert_eq!(failed.unwrap_err().to_string(), "no room");
    assert_eq!(*hears.borrow(), ["abort"], "what does not last is no reason to go on");
    let kept = words.kept.into_inner().unwrap();
    let expected = [
        "+d +f +link Directory 755 Regular 644 None [(0, 5)] None Symlink 777",
        "-f +g None [(3, 3)] None mode 700",
        "Some(2) [] Some(2)",
        "",
        "nothing",
        "Regular 644",
        "-link",
        "+last Regular 644",
    ];
    let places: Vec<_> = kept.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, Vec::from_iter(0..8));
    assert_eq!(kept.iter().map(|(_, words)| &words[..]).collect::<Vec<_>>(), expected);
    assert_eq!(words.waited.into_inner().unwrap(), Vec::from_iter(0..8));
}

/// When the first transaction takes its place, another one begins that writes the same bytes without a look at them. The first
/// waits so long for the other to have a place.
struct Meets {
    patience: Duration,
    files: FileSystem,
    order: Arc<Mutex<Vec<u8>>>,
    next: AtomicU64,
    other: Mutex<Option<JoinHandle<()>>>,
    writes: u8,
}

impl Journal for Meets {
    fn take_place(&self) -> u64 {
        if self.writes == 1 {
            let other = Meets {
                patience: Duration::ZERO,
                files: self.files.clone(),
                order: self.order.clone(),
                next: AtomicU64::new(0),
                other: Mutex::default(),
                writes: 2,
            };
            let meets = thread::spawn(move || {
                journaled(&other.files, &other, |t| t.write_at("f", [2], 0)).unwrap();
            });
            *self.other.lock().unwrap() = Some(meets);
            let until = Instant::now() + self.patience;
            while self.order.lock().unwrap().is_empty() && Instant::now() < until {
                thread::sleep(Duration::from_millis(1));
            }
        }
        self.order.lock().unwrap().push(self.writes);
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn keep(&self, _: u64, _: &Changes<'_>) {}

    fn give_back(&self, _: u64) {}

    fn wait(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

fn who_writes_later_has_a_later_place(patience: Duration) -> usize {
    let files = files();
    files.root().unwrap().create("f").unwrap().write_all(b"0").unwrap();
    let order = Arc::default();
    let (next, other) = (AtomicU64::new(0), Mutex::default());
    let meets = Meets { patience, files: files.clone(), order, next, other, writes: 1 };
    journaled(&files, &meets, |t| t.write_at("f", [1], 0)).unwrap();
    meets.other.lock().unwrap().take().unwrap().join().unwrap();
    let order = meets.order.lock().unwrap();
    let mut content = [0];
    files.root().unwrap().open("f").unwrap().read_exact(&mut content).unwrap();
    assert_eq!(content[0], *order.last().unwrap(), "done again in the order of {order:?}");
    order.len()
}

#[test]
fn places_are_in_the_order_of_changes() {
    who_writes_later_has_a_later_place(Duration::from_millis(100));
}

/// When the first transaction takes its place, which removes a name, another one begins that rests on that name.
struct Rests {
    files: FileSystem,
    words: Arc<Words>,
    other: Mutex<Option<JoinHandle<io::Result<()>>>>,
    call: fn(&transact::Scope<'_>) -> io::Result<()>,
}

impl Journal for Rests {
    fn take_place(&self) -> u64 {
        let place = self.words.take_place();
        let mut other = self.other.lock().unwrap();
        if other.is_none() {
            let (files, words, call) = (self.files.clone(), self.words.clone(), self.call);
            *other = Some(thread::spawn(move || journaled(&files, &*words, call)));
            thread::sleep(Duration::from_millis(100));
        }
        place
    }

    fn keep(&self, place: u64, changes: &Changes<'_>) {
        self.words.keep(place, changes);
    }

    fn give_back(&self, place: u64) {
        self.words.give_back(place);
    }

    fn wait(&self, place: u64) -> io::Result<()> {
        self.words.wait(place)
    }
}

#[test]
fn who_rests_on_what_was_before_has_an_earlier_place() {
    for call in [|t: &transact::Scope<'_>| t.hard_link("f", "g"), |t: &transact::Scope<'_>| t.rename("f", "g")] {
        let (files, words) = (files(), Arc::<Words>::default());
        files.root().unwrap().create("f").unwrap();
        let rests = Rests { files: files.clone(), words: words.clone(), other: Mutex::default(), call };
        let removed = journaled(&files, &rests, |t| t.remove_file("f"));
        let rested = rests.other.lock().unwrap().take().unwrap().join().unwrap();
        let mut kept = words.kept.lock().unwrap();
        kept.retain(|(_, words)| words != "nothing");
        kept.sort();
        let place_of = |sign: &str| kept.iter().position(|(_, words)| words.contains(sign));
        if let (Ok(()), Ok(())) = (&removed, &rested) {
            assert!(place_of("+g") < place_of("-f"), "done again in the order of {kept:?}");
        }
        assert_eq!(kept.len(), usize::from(removed.is_ok()) + usize::from(rested.is_ok()));
        assert!(!kept.is_empty());
    }
}

/// Notes what comes when.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<&'static str>>>);

impl Notes {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }
}

impl Journal for Notes {
    fn take_place(&self) -> u64 {
        0
    }

    fn keep(&self, _: u64, _: &Changes<'_>) {
        self.note("kept");
    }

    fn give_back(&self, _: u64) {}

    fn wait(&self, _: u64) -> io::Result<()> {
        self.note("lasts");
        Ok(())
    }
}

struct Takes(Notes);

impl Participant for Takes {
    fn prepare(&mut self) -> Result<(), Refused> {
        Ok(())
    }

    fn commit(&mut self) {
        self.0.note("commit");
    }

    fn abort(&mut self) {
        self.0.note("abort");
    }
}

#[test]
fn participants_do_not_wait_for_the_journal() {
    let (files, notes) = (files(), Notes::default());
    journaled(&files, &notes, |t| {
        t.take_part(Takes(notes.clone()));
        t.on_commit(|| notes.note("closure"));
        t.create("f")
    })
    .unwrap();
    assert_eq!(*notes.0.lock().unwrap(), ["kept", "commit", "lasts", "closure"]);
}

struct Panics;

impl Participant for Panics {
    fn prepare(&mut self) -> Result<(), Refused> {
        Ok(())
    }

    fn unmark(&mut self, _: bool) {
        resume_unwind(Box::new("of a participant"));
    }

    fn commit(&mut self) {}

    fn abort(&mut self) {}
}

#[test]
fn what_has_happened_is_kept_though_a_participant_panics_then() {
    let (files, notes) = (files(), Notes::default());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        journaled(&files, &notes, |t| {
            t.take_part(Panics);
            t.take_part(Takes(notes.clone()));
            t.create("f")
        })
    }));
    assert!(panicked.is_err_and(|panic| panic.downcast_ref() == Some(&"of a participant")));
    assert_eq!(*notes.0.lock().unwrap(), ["kept", "commit", "lasts"]);
    assert!(files.root().unwrap().metadata("f").is_ok());
}

#[cfg(fuzzing)]
#[test]
fn a_place_that_is_taken_too_late_is_found() {
    // As long as it takes: then the other has a place.
    let search = || who_writes_later_has_a_later_place(Duration::from_secs(60));
    sync::mutant::must_be_caught("transact: a place is taken after the decision", search);
}
