//! A user changes the data of a file while somebody gives that a set-user-id bit: whoever gave it and then saw the data of
//! before must not find both the bit and the user's data in the end.

use history::{play, repeat, told};
use percpu::Core;
use scalefs::data::{self, DescriptorOptions};
use scalefs::{Credentials, DataOperations, Errno, Fields, OpenFlags, Process, Start, attributes, names};
use sync::Spin;

use crate::instance::{Instance, with_instance};

const AT: Start<scalefs::Node<'static>> = Start::WorkingDirectory;
const OLD: u8 = 1;
const NEW: u8 = 2;

#[derive(Clone, Copy, Debug)]
enum Call {
    /// By the user.
    Write,
    Cut,
    /// By the superuser.
    GiveBit,
    Read,
}

/// Of `Read` the first byte, zero at the end of the file; else nothing.
type Outcome = Result<u8, Errno>;

fn call(instance: &Instance, core: &Core, [superuser, user]: [&Process; 2], call: Call) -> Outcome {
    let by = |process| instance.fs.enter(core, process, &Spin);
    match call {
        Call::Write => data::write_at(&by(user), 0, &[NEW], 0).map(|_| 0),
        Call::Cut => data::truncate(&by(user), 0, 0).map(|()| 0),
        Call::GiveBit => attributes::change_mode(by(superuser).objects(), AT, b"a", 0o4777).map(|()| 0),
        Call::Read => {
            let mut byte = [0];
            data::read_at(&by(superuser), 0, &mut byte, 0).map(|_| byte[0])
        }
    }
}

/// What each of the two threads calls.
type Plan = Vec<Vec<Call>>;

fn check(number: u64, plan: &Plan) {
    with_instance(8, |instance| {
        let core = instance.core(3);
        let processes = [Credentials::SUPERUSER, Credentials::new(1, 1, &[]).unwrap()];
        let processes = processes.map(|who| Process::new(instance.fs, &core, who).unwrap());
        let [superuser, user] = &processes;
        let open = |process: &Process, flags| {
            data::open(&instance.fs.enter(&core, process, &Spin), AT, b"a", flags, 0o777, DescriptorOptions::PLAIN)
        };
        let both = OpenFlags::READ | OpenFlags::WRITE;
        assert_eq!(open(superuser, both | OpenFlags::CREATE), Ok(0));
        attributes::change_mode(instance.fs.enter(&core, superuser, &Spin).objects(), AT, b"a", 0o777).unwrap();
        assert_eq!(open(user, both), Ok(0));
        assert_eq!(data::write_at(&instance.fs.enter(&core, superuser, &Spin), 0, &[OLD], 0), Ok(1));
        let player = |thread: usize| {
            let core = instance.core(thread);
            move |next: &Call| call(instance, &core, [superuser, user], *next)
        };
        let made = play(plan, player);
        let verbs = instance.fs.enter(&core, superuser, &Spin);
        let mode = data::stat(&verbs, 0, Fields::PERMISSIONS).unwrap().mode;
        // The last of the superuser's calls saw what was there when the bit had been given.
        let seen = made[1].last().unwrap().outcome;
        assert!(mode == 0o777 || seen != Ok(OLD), "mode {mode:o} in round {number}:\n{}", told(&made));
        names::unlink(verbs.objects(), AT, b"a").unwrap();
        drop(verbs);
        for process in processes {
            process.exit(instance.fs, &core, &Spin);
        }
    });
}

fn plans() -> [Plan; 2] {
    [Call::Write, Call::Cut].map(|change| vec![vec![change], vec![Call::GiveBit, Call::Read]])
}

#[test]
fn a_users_data_has_no_bit_that_was_given_to_the_data_before() {
    for plan in plans() {
        repeat(if cfg!(shuttle) { 2_000 } else { 50 }, plan, check);
    }
}

/// A test that cannot fail proves nothing.
#[cfg(shuttle)]
#[test]
fn planted_faults_are_found() {
    for plan in plans() {
        let fault = "scalefs: set-id bits that come during a write stay";
        sync::mutant::must_be_caught(fault, || repeat(100_000, plan, check));
    }
}
