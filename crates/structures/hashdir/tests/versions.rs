//! Versions of names: what changes and changes back between two looks that tell the same is another version.
#![cfg(not(loom))]

use commit::Decisions;
use epoch::Epochs;
use hashdir::{HashDir, Key};
use percpu::testing::World;
use sync::Spin;

fn key(name: &str) -> Key<'_> {
    Key::new(name.as_bytes(), 42).unwrap()
}

/// Tells of each thing that is done to a name and undone whether it was noticed.
fn noticed() -> Vec<(&'static str, bool)> {
    let world = World::new(1);
    let core = world.core(0);
    let (decisions, epochs) = (Decisions::create(world.arena()).unwrap(), Epochs::create(world.arena()).unwrap());
    // SAFETY: all lie in one arena, which has one `Epochs`.
    let dir = world.place(unsafe { HashDir::new(&core, decisions, 1) }.unwrap()).unwrap();
    let guard = epochs.pin(&core);
    let insert = |name| dir.lock(&guard, &key(name), &Spin).insert(&key(name), 1).unwrap();
    let remove = |name| dir.lock(&guard, &key(name), &Spin).lookup(&key(name)).unwrap().remove();
    let replace = |value| dir.lock(&guard, &key("there"), &Spin).lookup(&key("there")).unwrap().replace(value);
    let prepare = |value, happened| {
        let locked = dir.lock(&guard, &key("there"), &Spin);
        let operation = decisions.begin_firm(&core);
        let prepared = locked.lookup(&key("there")).unwrap().prepare_replace(value, operation.tag());
        if happened {
            operation.commit().unwrap()
        } else {
            operation.abort()
        }
        prepared.finish(happened);
    };
    let changes = |name, act: &dyn Fn()| {
        let look = || dir.lookup(&guard, &key(name)).map(|found| found.value());
        let (before, version) = (look(), dir.value_version(&guard, &key(name)));
        act();
        assert_eq!(look(), before, "it is undone");
        dir.value_version(&guard, &key(name)) != version
    };
    insert("there");
    let told = vec![
        ("a name comes and goes", changes("free", &|| (insert("free"), remove("free")).1)),
        ("a name goes and comes", changes("there", &|| (remove("there"), insert("there")).1)),
        ("a value changes twice", changes("there", &|| (replace(2), replace(1)).1)),
        ("a prepared value, too", changes("there", &|| (prepare(2, true), prepare(1, true)).1)),
    ];
    assert!(!changes("there", &|| ()), "who only looks changes nothing");
    let version = dir.version(&guard, &key("there"));
    replace(1);
    assert_eq!(dir.version(&guard, &key("there")), version, "that it exists rests on no value");
    assert!(!dir.is_locked(&guard, &key("there")));
    let locked = dir.lock(&guard, &key("there"), &Spin);
    assert!(dir.is_locked(&guard, &key("there")));
    drop(locked);
    told
}

#[test]
fn what_changes_and_changes_back_is_another_version() {
    for (what, is_noticed) in noticed() {
        assert!(is_noticed, "{what}");
    }
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("hashdir: changes are not counted", || {
        noticed().iter().for_each(|(what, is_noticed)| assert!(is_noticed, "{what}"));
    });
}

#[test]
fn traces_of_a_name_are_alike_as_long_as_it_leads_to_the_same() {
    let world = World::new(1);
    let core = world.core(0);
    let (decisions, epochs) = (Decisions::create(world.arena()).unwrap(), Epochs::create(world.arena()).unwrap());
    // SAFETY: all lie in one arena, which has one `Epochs`.
    let dir = world.place(unsafe { HashDir::new(&core, decisions, 1) }.unwrap()).unwrap();
    let guard = epochs.pin(&core);
    let mut seen = std::collections::HashSet::new();
    for name in ["here", "there"] {
        dir.lock(&guard, &key(name), &Spin).insert(&key(name), 1).unwrap();
        let trace = || dir.lookup(&guard, &key(name)).unwrap().trace();
        for value in (0..500).map(|round| round % 2) {
            assert!(seen.insert(trace()), "another value, or the same another time");
            assert_eq!(trace(), trace());
            dir.lock(&guard, &key(name), &Spin).lookup(&key(name)).unwrap().replace(value);
        }
    }
}
