//! Pairs of small programs, of which one is in a transaction and the other, a plain one, comes in the middle. Where the order of the two
//! makes no difference on tmpfs, both must be through; elsewhere the transaction is refused, or it is as after one of the orders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Mounted, Scratch, can_mount};
use crate::{Halfway, REFUSED, mount, text, tree};

const PROGRAMS: [&str; 14] = [
    "cat a",
    "cat b",
    "echo 5 > a",
    "echo 6 >> a",
    "rm b",
    "echo new > n",
    "test -e n && echo yes",
    "mv a c",
    "ls",
    "ls d",
    "mkdir d/y",
    "ln a l",
    "chmod 600 b",
    "cp b f",
];

/// Pairs in which `stat` is asked for more than the first one needs: `cat` gets mode and link count of what it reads.
const ASK_FOR_MORE: [(&str, &str); 2] = [("cat a", "ln a l"), ("cat b", "chmod 600 b")];

/// What two programs say, and what they leave.
type Shown = (String, String, Vec<(PathBuf, String)>);

fn prepare(place: &Path) {
    fs::create_dir_all(place.join("d")).expect("there is room");
    fs::write(place.join("a"), "1\n").expect("there is room");
    fs::write(place.join("b"), "2\n").expect("there is room");
}

fn run(place: &Path, script: &str) -> String {
    let output = Command::new("sh").args(["-c", script]).current_dir(place).env("LC_ALL", "C").output();
    let output = output.expect("there is a shell");
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// Both on tmpfs, the second one first or not.
fn in_order(first: &str, second: &str, is_swapped: bool) -> Shown {
    let scratch = Scratch::below(Path::new("/dev/shm"));
    prepare(&scratch.0);
    let (one, two);
    if is_swapped {
        two = run(&scratch.0, second);
        one = run(&scratch.0, first);
    } else {
        one = run(&scratch.0, first);
        two = run(&scratch.0, second);
    }
    (one, two, tree(&scratch.0))
}

/// The first in a transaction, and the second before that ends; nothing if the first is refused.
fn overlapping(mounted: &Mounted, name: &str, first: &str, second: &str) -> Option<Shown> {
    let place = mounted.point.join(name);
    prepare(&place);
    let halfway = Halfway::new(mounted, &[], &format!("cd {name}; {first}"), "true");
    let two = run(&place, second);
    let (code, one) = halfway.go_on();
    assert!([0, REFUSED].contains(&code), "{first}, {second}: {code} {one}");
    (code == 0).then(|| (one, two, tree(&place)))
}

#[test]
fn pairs_that_commute_are_both_through() {
    if !can_mount() {
        return;
    }
    let mounted = mount();
    let (mut commute, mut refused, mut others, mut wrong) = (0, Vec::new(), (0, 0), Vec::new());
    for (number, first) in PROGRAMS.iter().enumerate() {
        for (other, second) in PROGRAMS.iter().enumerate() {
            let orders = [in_order(first, second, false), in_order(first, second, true)];
            let got = overlapping(&mounted, &format!("{number}-{other}"), first, second);
            let is_right = got.as_ref().is_none_or(|got| orders.contains(got));
            if !is_right {
                wrong.push((first, second, got.clone()));
            }
            // Of two that are equal no one can tell the order, also where one of them has done what the other one finds done.
            let commutes = first != second && orders[0] == orders[1];
            match (commutes, got) {
                (true, Some(_)) => commute += 1,
                (true, None) => refused.push((*first, *second)),
                (false, Some(_)) => others.0 += 1,
                (false, None) => others.1 += 1,
            }
        }
    }
    println!("of {} pairs that commute {commute} are through; refused: {refused:?}", commute + refused.len());
    println!("of those that do not, {} came in one of the orders, {} were refused", others.0, others.1);
    assert!(wrong.is_empty(), "as in no order: {wrong:#?}");
    refused.retain(|pair| !ASK_FOR_MORE.contains(pair));
    assert!(refused.is_empty(), "refused without need: {refused:?}");
}
