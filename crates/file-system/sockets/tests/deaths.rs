//! A process dies before each of its accesses in a send, a receive, a bind and a close: whoever takes its core over finds each
//! message sent or not, taken or not, once; and all can go on.
#![cfg(all(shuttle, unix))]

mod support;

use percpu::testing::{die, die_everywhere};
use sockets::{Name, Order, SocketError};
use support::Instance;
use sync::Spin;

fn messages(instance: &Instance, core: &percpu::Core<'_>, from: &sockets::Socket) -> Vec<u8> {
    let mut bytes = [0; 4];
    std::iter::from_fn(|| instance.sockets().receive(core, from, &mut bytes, &Spin).ok().map(|_| bytes[0])).collect()
}

#[test]
fn a_send_has_happened_or_not() {
    for order in [Order::Ordered, Order::Unordered] {
        let (mut before, mut after) = (0, 0);
        die_everywhere(|access| {
            let instance = Instance::new(2, 64);
            let sockets = instance.sockets();
            let core = instance.core(0);
            let [one, other] = sockets.pair(&core, order).unwrap();
            let heir = die(instance.world(), 1, access, |core| {
                sockets.send(core, &one, &[1], &Spin).unwrap();
            });
            let died = heir.is_some();
            if let Some(heir) = &heir {
                // SAFETY: taken over just now.
                unsafe { sockets.repair_taken_over(heir) };
                sockets.send(heir, &one, &[2], &Spin).unwrap();
            }
            match (died, messages(&instance, &core, &other).as_slice()) {
                (true, [2]) => before += 1,
                (true, [1, 2]) => after += 1,
                (false, [1]) => {}
                (_, found) => panic!("{order:?}: before access {access}: {found:?}"),
            }
            died
        });
        assert!(before > 0 && after > 0, "{order:?}: {before} before the store that tells, {after} after it");
    }
}

#[test]
fn a_receive_has_happened_or_not() {
    for order in [Order::Ordered, Order::Unordered] {
        let (mut before, mut after) = (0, 0);
        die_everywhere(|access| {
            let instance = Instance::new(2, 64);
            let sockets = instance.sockets();
            let core = instance.core(0);
            let [one, other] = sockets.pair(&core, order).unwrap();
            (1..3).for_each(|message| sockets.send(&core, &one, &[message], &Spin).unwrap());
            let heir = die(instance.world(), 1, access, |core| {
                sockets.receive(core, &other, &mut [0; 4], &Spin).unwrap();
            });
            let died = heir.is_some();
            if let Some(heir) = &heir {
                // SAFETY: taken over just now.
                unsafe { sockets.repair_taken_over(heir) };
            }
            match (died, messages(&instance, &core, &other).as_slice()) {
                (true, [1, 2]) => before += 1,
                (true, [2]) => after += 1,
                (false, [2]) => {}
                (_, found) => panic!("{order:?}: before access {access}: {found:?}"),
            }
            sockets.send(&core, &one, &[3], &Spin).unwrap();
            assert_eq!(messages(&instance, &core, &other), [3]);
            died
        });
        assert!(before > 0 && after > 0, "{order:?}: {before} before the store that takes, {after} after it");
    }
}

#[test]
fn names_are_there_or_not_and_can_be_used_again() {
    let name = Name::new(b"n").unwrap();
    die_everywhere(|access| {
        let instance = Instance::new(2, 64);
        let sockets = instance.sockets();
        let core = instance.core(0);
        let heir = die(instance.world(), 1, access, |core| {
            let socket = sockets.socket(core, Order::Ordered).unwrap();
            sockets.bind(core, &socket, &name, &Spin).unwrap();
            sockets.close(core, socket, &Spin);
        });
        let died = heir.is_some();
        if let Some(heir) = &heir {
            // SAFETY: taken over just now.
            unsafe { sockets.repair_taken_over(heir) };
        }
        let client = sockets.socket(&core, Order::Ordered).unwrap();
        let bound = sockets.bind(&core, &client, &name, &Spin);
        match bound {
            Ok(()) => sockets.send_to(&core, &client, &name, &[1], &Spin).unwrap(),
            Err(SocketError::NameInUse) => {
                let sent = sockets.send_to(&core, &client, &name, &[1], &Spin);
                assert!(matches!(sent, Ok(()) | Err(SocketError::Refused)), "before access {access}: {sent:?}");
            }
            Err(error) => panic!("before access {access}: {error}"),
        }
        died
    });
}

#[test]
fn planted_faults_are_found() {
    sync::mutant::must_be_caught("sockets: an heir does not count what was announced", || {
        a_send_has_happened_or_not();
        a_receive_has_happened_or_not();
    });
}
