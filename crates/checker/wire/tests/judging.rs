//! What a window may give: exact values, values up to a bijection, times by order, one of several outcomes.

use proptest::prelude::*;
use wire::batch::Batch;
use wire::case::Case;
use wire::judge::{as_expected, unreached, wrong};
use wire::results::WindowResult;
use wire::value::Value;

const CASE: &str = r#"{
    "id": "link-rename-0", "class": "", "level": "conflict", "path": 0,
    "calls": [{"call": "link", "args": {"old": "a", "new": "b"}, "process": 0, "thread": 0, "core": 0},
              {"call": "stat", "args": {"name": "a"}, "process": 1, "thread": 0, "core": 1}],
    "setup": [{"call": "open", "args": {"name": "a", "creat": true}, "process": 0, "result": 0}],
    "observe": [{"call": "stat", "args": {"name": "b"}, "process": 0}],
    "orders": [{"order": [0, 1], "outcomes": [
                  {"results": [0, {"struct": {"ino": {"sort": "Inum", "id": 7}, "nlink": 2}}],
                   "observation": [{"struct": {"nlink": 2, "ino": {"sort": "Inum", "id": 7}}}]},
                  {"results": [{"errno": "EMLINK"}, {"sort": "Inum", "id": 1}],
                   "observation": [{"sort": "Inum", "id": 2}]}]},
               {"order": [1, 0], "outcomes": [{"results": [{"time": 1}, {"time": 2}], "observation": [{"time": 2}]}]},
               {"order": [0, 1], "outcomes": [{"results": [{"sort": "Inum", "id": 1}, {"sort": "Inum", "id": 2}],
                   "observation": [{"seq": [{"sort": "Inum", "id": 2}, {"sort": "Inum", "id": 3}]}]}]}]
}"#;

fn inode(id: u64) -> Value<'static> {
    Value::Opaque { sort: "Inum".into(), id }
}

fn status(id: u64, nlink: i64) -> Value<'static> {
    Value::Struct(vec![("ino".into(), inode(id)), ("nlink".into(), Value::Int(nlink))])
}

/// A job queue: two are submitted, and one is leased; any may be.
const LEASED: &str = r#"{
    "calls": [{"call": "ack", "args": {"job": {"sort": "Job", "id": 0}}, "process": 0, "thread": 0, "core": 0}],
    "setup": [{"call": "submit", "args": {"payload": "p"}, "process": 0, "result": {"sort": "Job", "id": 0}},
              {"call": "submit", "args": {"payload": "p"}, "process": 0, "result": {"sort": "Job", "id": 1}},
              {"call": "lease", "args": {}, "process": 0, "result": {"sort": "Job", "id": 0},
               "also": [{"sort": "Job", "id": 1}, {"errno": "EAGAIN"}]}],
    "observe": [],
    "orders": [{"order": [0], "outcomes": [{"results": [0], "observation": []}]}]
}"#;

#[test]
fn a_set_up_that_another_choice_leads_elsewhere_is_not_reached() {
    let job = |id| Value::Opaque { sort: "Job".into(), id };
    let told = |jobs: [u64; 2], leased: Value<'static>| {
        let case = Case::parse(LEASED).unwrap();
        let setup = vec![job(jobs[0]), job(jobs[1]), leased];
        let result = WindowResult::Ran { setup, calls: vec![Value::Int(0)], observation: vec![], aborted: 0 };
        (unreached(&case, &result), wrong(&case, 0, &result).is_some())
    };
    assert_eq!(told([7, 9], job(7)), (None, false), "as the test has it");
    let (why, _) = told([7, 9], job(9));
    assert_eq!(why.unwrap(), "set-up 2, lease(): returned Job 9, which is allowed and leads elsewhere");
    assert!(told([7, 9], Value::Errno(11)).0.is_some());
    assert_eq!(told([7, 9], job(8)), (None, true), "a job that nobody submitted");
    assert_eq!(told([7, 9], Value::Errno(2)), (None, true), "an error that is not allowed");
    assert_eq!(told([7, 7], job(7)), (None, true), "a step before has no choice");
    let refused = WindowResult::Refused("no such call".into());
    assert_eq!(unreached(&Case::parse(LEASED).unwrap(), &refused), None);
}

fn judge(order: usize, calls: [Value<'_>; 2], observation: Value<'_>) -> Option<String> {
    let case = Case::parse(CASE).unwrap();
    let result = WindowResult::Ran {
        setup: vec![Value::Int(0)],
        calls: calls.to_vec(),
        observation: vec![observation],
        aborted: 0,
    };
    wrong(&case, order, &result)
}

#[test]
fn the_implementation_may_choose_any_inode_number_but_must_stay_with_it() {
    assert_eq!(judge(0, [Value::Int(0), status(4711, 2)], status(4711, 2)), None);
    let why = judge(0, [Value::Int(0), status(4711, 2)], status(4712, 2)).unwrap();
    assert_eq!(
        why,
        "order 0,1: observation 0, stat(name=\"b\"): ino: returned Inum 4712 where Inum 4711 was returned before"
    );
}

#[test]
fn two_different_values_that_exist_together_must_be_different() {
    let pair = |first, second| Value::Seq(vec![inode(first), inode(second)]);
    assert_eq!(judge(2, [inode(5), inode(6)], pair(6, 7)), None);
    let why = judge(2, [inode(5), inode(6)], pair(6, 6)).unwrap();
    assert!(why.ends_with("returned Inum 6 again, where another one is expected"), "{why}");
}

#[test]
fn the_name_of_what_is_gone_may_come_again() {
    let pair = |first, second| Value::Seq(vec![inode(first), inode(second)]);
    assert_eq!(judge(2, [inode(6), inode(6)], pair(6, 7)), None);
    assert_eq!(judge(2, [inode(7), inode(6)], pair(6, 7)), None);
    let why = judge(2, [inode(7), inode(5)], pair(6, 7)).unwrap();
    assert!(why.contains("returned Inum 6 where Inum 5 was returned before"), "{why}");
}

#[test]
fn exact_values_are_compared_exactly_and_named() {
    let why = judge(0, [Value::Int(0), status(1, 3)], status(1, 2)).unwrap();
    assert_eq!(why, "order 0,1: call 1, stat(name=\"a\"): nlink: returned 3, acceptable is 2");
    let why = judge(0, [Value::Errno(2), status(1, 2)], status(1, 2)).unwrap();
    assert!(why.contains("call 0, link(new=\"b\", old=\"a\"): returned ENOENT, acceptable is"), "{why}");
}

/// As an adapter that answers `commutant_number` for a value that was put in: two numbers alone say nothing of it.
#[test]
fn a_number_where_a_member_is_expected_is_called_one() {
    let case = LEASED.replace(r#""results": [0]"#, r#""results": ["v0"]"#);
    let job = |id| Value::Opaque { sort: "Job".into(), id };
    let setup = vec![job(7), job(9), job(7)];
    let result = WindowResult::Ran { setup, calls: vec![Value::Int(17)], observation: vec![], aborted: 0 };
    let why = wrong(&Case::parse(&case).unwrap(), 0, &result).unwrap();
    assert!(
        why.ends_with("returned the number 17, acceptable is the member \"v0\" of a sort (commutant_member, Member)"),
        "{why}"
    );
}

#[test]
fn an_implementation_may_tell_more_fields_than_the_test_expects_but_not_less() {
    let mut more = status(1, 2);
    let mut less = status(1, 2);
    if let (Value::Struct(more), Value::Struct(less)) = (&mut more, &mut less) {
        more.push(("size".into(), Value::Int(7)));
        less.pop();
    }
    assert_eq!(judge(0, [Value::Int(0), more.clone()], more.clone()), None);
    let why = judge(0, [Value::Int(0), less], more).unwrap();
    assert!(why.contains("returned no field nlink"), "{why}");
}

#[test]
fn a_failed_set_up_is_named() {
    let case = Case::parse(CASE).unwrap();
    let result = WindowResult::Ran {
        setup: vec![Value::Errno(17)],
        calls: vec![Value::Null; 2],
        observation: vec![Value::Null],
        aborted: 0,
    };
    let why = wrong(&case, 0, &result).unwrap();
    assert!(why.contains("set-up 0, open(creat=true, name=\"a\"): returned EEXIST, acceptable is 0"), "{why}");
}

#[test]
fn a_refusal_and_missing_results_are_wrong() {
    let case = Case::parse(CASE).unwrap();
    assert_eq!(wrong(&case, 0, &WindowResult::Refused("no".to_owned())).unwrap(), "not run: no");
    let result = WindowResult::Ran { setup: vec![], calls: vec![], observation: vec![], aborted: 0 };
    assert!(wrong(&case, 0, &result).unwrap().contains("another number of results"));
    assert!(wrong(&case, 3, &result).unwrap().contains("no order"));
}

proptest! {
    #[test]
    fn times_keep_their_order_and_equal_ones_are_free(first in 0..9i64, second in 0..9i64, third in 0..9i64) {
        let fits = first <= second && first <= third;
        let came = judge(1, [Value::Time(first), Value::Time(second)], Value::Time(third));
        prop_assert_eq!(came.is_none(), fits, "{:?}", came);
    }

    #[test]
    fn reading_any_text_never_panics(text in ".{0,200}") {
        let _ = Case::parse(&text);
    }

    #[test]
    fn reading_a_changed_case_never_panics(place in any::<prop::sample::Index>(), new in any::<char>()) {
        let mut text: Vec<char> = CASE.chars().collect();
        let place = place.index(text.len());
        text[place] = new;
        let _ = Case::parse(&text.into_iter().collect::<String>());
    }
}

#[test]
fn bad_cases_say_what_and_where() {
    for (from, to, expected) in [
        ("\"calls\"", "\"call\"", "no list \"calls\""),
        ("[1, 0]", "[1, 1]", "orders[1]: \"order\" is not a permutation of the calls"),
        ("EMLINK", "EMLINKS", "orders[0]: the error \"EMLINKS\": not a name of a Linux error"),
        ("{\"time\": 1}", "[1]", "orders[1]: a list where a value is expected: write {\"seq\": [...]}"),
        ("\"process\": 1", "\"process\": 1000", "calls[1]: no small number \"process\""),
        ("{\"time\": 1}", "1.5", "orders[1]: the number 1.5: expected an integer of 64 bits"),
    ] {
        let text = CASE.replacen(from, to, 1);
        assert_ne!(text, CASE, "{from}");
        assert_eq!(Case::parse(&text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_sequence_is_as_expected_if_every_step_and_the_observation_are() {
    let sequence = Case::parse(
        r#"{"calls": [], "orders": [],
            "setup": [{"call": "create", "args": {}, "process": 0, "core": 1, "result": {"sort": "Inum", "id": 0}},
                      {"call": "touch", "args": {}, "process": 0, "core": 0, "result": {"time": 2}}],
            "observe": [{"call": "stat", "args": {}, "process": 0, "result": {"sort": "Inum", "id": 0}}]}"#,
    )
    .unwrap();
    let came = |setup: &[Value<'static>], observed: Value<'static>| {
        let result =
            WindowResult::Ran { setup: setup.to_vec(), calls: vec![], observation: vec![observed], aborted: 0 };
        as_expected(&sequence, &result)
    };
    assert!(came(&[inode(4711), Value::Time(9)], inode(4711)));
    assert!(!came(&[inode(4711), Value::Time(9)], inode(4712)));
    assert!(!came(&[inode(4711), Value::Null], inode(4711)));
    assert!(!came(&[inode(4711)], inode(4711)));
    assert!(!as_expected(&sequence, &WindowResult::Refused("no".to_owned())));
}

#[test]
fn of_several_outcomes_the_one_that_fits_longest_is_told() {
    let outcome = |results: [i64; 2], observation: [i64; 2]| {
        format!(r#"{{"results": {results:?}, "observation": {observation:?}}}"#)
    };
    let said = |outcomes: [String; 2], came: [i64; 4]| {
        let text = format!(
            r#"{{"calls": [{{"call": "a", "args": {{}}, "process": 0, "thread": 0, "core": 0}},
                          {{"call": "b", "args": {{}}, "process": 0, "thread": 1, "core": 1}}],
                "setup": [{{"call": "s", "args": {{}}, "process": 0, "result": 0}}],
                "observe": [{{"call": "x", "args": {{}}, "process": 0}}, {{"call": "y", "args": {{}}, "process": 0}}],
                "orders": [{{"order": [0, 1], "outcomes": [{}]}}]}}"#,
            outcomes.join(",")
        );
        let [first, second, third, fourth] = came.map(Value::Int);
        let (setup, calls, observation) = (vec![Value::Int(0)], vec![first, second], vec![third, fourth]);
        wrong(&Case::parse(&text).unwrap(), 0, &WindowResult::Ran { setup, calls, observation, aborted: 0 })
    };
    let fits = [[1, 2], [3, 4]];
    let ends = [
        ([9, 2], [3, 4], "call 0, a()"),
        ([1, 9], [3, 4], "call 1, b()"),
        ([1, 2], [9, 4], "observation 0, x()"),
        ([1, 2], [3, 9], "observation 1, y()"),
    ];
    for (longer, (results, observation, place)) in ends.into_iter().enumerate() {
        for (results_of_other, observation_of_other, _) in &ends[..longer] {
            let (best, other) = (outcome(results, observation), outcome(*results_of_other, *observation_of_other));
            let came = [fits[0][0], fits[0][1], fits[1][0], fits[1][1]];
            for outcomes in [[best.clone(), other.clone()], [other, best]] {
                let why = said(outcomes, came).unwrap();
                assert!(why.starts_with(&format!("order 0,1: {place}: ")), "{why}");
            }
        }
    }
    assert_eq!(said([outcome([1, 2], [3, 4]), outcome([1, 9], [3, 4])], [1, 2, 3, 4]), None);
}

#[test]
fn a_case_tells_its_place_in_a_batch() {
    let (case, mut batch) = (Case::parse(CASE).unwrap(), Batch::default());
    assert_eq!([0; 3].map(|_| case.add_to(&mut batch)), [0, 1, 2]);
    assert_eq!((batch.tests.len(), batch.tests[2].calls.len(), batch.tests[2].setup.len()), (3, 2, 1));
}
