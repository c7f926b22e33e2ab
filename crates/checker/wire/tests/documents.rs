//! Batches and results survive their binary form, and bytes that are not one of them give an error.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::batch::{Batch, PlacedCall, Shape, Step, Test, Window};
use wire::plan::{Call, Plan};
use wire::results::{self, ResultsWriter, WindowResult};
use wire::value::Value;

fn any_value() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        ".{0,12}".prop_map(|text| Value::Text(text.into())),
        any::<u16>().prop_map(Value::Errno),
        any::<u8>().prop_map(Value::Signal),
        ("[A-Z][a-z]{0,6}", any::<u64>()).prop_map(|(sort, id)| Value::Opaque { sort: sort.into(), id }),
        any::<i64>().prop_map(Value::Time),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(("[a-z]{1,6}", inner.clone()), 0..4).prop_map(|fields| {
                Value::Struct(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
            }),
            vec(inner, 0..4).prop_map(Value::Seq),
        ]
    })
}

fn any_shape() -> impl Strategy<Value = Shape<'static>> {
    ("[a-z]{1,8}", vec("[a-z]{1,5}", 0..3)).prop_map(|(call, parameters)| Shape {
        call: call.into(),
        parameters: parameters.into_iter().map(Into::into).collect(),
    })
}

prop_compose! {
    fn any_step(shapes: Vec<Shape<'static>>)(
        shape in 0..shapes.len(),
        process in 0..4u8,
        core in proptest::option::of(0..4u8),
        arguments in vec(any_value(), 3),
        expected in any_value(),
    ) -> Step {
        let arguments = arguments.into_iter().take(shapes[shape].parameters.len()).collect();
        Step { shape, process, core, arguments, expected, also: Vec::new() }
    }
}

fn any_test(shapes: Vec<Shape<'static>>) -> impl Strategy<Value = Test> {
    let observed = any_step(shapes.clone()).prop_map(|step| Step { expected: Value::Null, ..step });
    (vec(any_step(shapes.clone()), 1..4), vec(any_step(shapes), 0..4), vec(observed, 0..4)).prop_map(
        |(calls, setup, observe)| Test {
            calls: calls
                .into_iter()
                .zip(0..)
                .map(|(step, core)| PlacedCall {
                    shape: step.shape,
                    process: step.process,
                    thread: core,
                    core,
                    arguments: step.arguments,
                })
                .collect(),
            setup,
            observe,
        },
    )
}

fn any_batch() -> impl Strategy<Value = Batch> {
    vec(any_shape(), 1..4)
        .prop_flat_map(|shapes| (Just(shapes.clone()), vec(any_test(shapes), 1..4)))
        .prop_flat_map(|(shapes, tests)| {
            let windows = (0..tests.len()).prop_flat_map({
                let tests = tests.clone();
                move |test| {
                    let calls: Vec<u8> = (0..).take(tests[test].calls.len()).collect();
                    Just(calls).prop_shuffle().prop_map(move |order| Window { test, order })
                }
            });
            (Just(shapes), Just(tests), vec(windows, 0..5))
        })
        .prop_map(|(shapes, tests, windows)| Batch { shapes, tests, windows })
}

fn any_result() -> impl Strategy<Value = WindowResult<'static>> {
    prop_oneof![
        (vec(any_value(), 0..4), vec(any_value(), 0..4), vec(any_value(), 0..4), any::<u8>())
            .prop_map(|(setup, calls, observation, aborted)| WindowResult::Ran { setup, calls, observation, aborted }),
        ".{0,40}".prop_map(WindowResult::Refused),
        ".{0,40}".prop_map(WindowResult::Unsupported),
    ]
}

/// The results of windows, written by a function for values.
fn encode_by(windows: &[WindowResult<'_>], write: impl Fn(&mut ResultsWriter, &Value<'_>)) -> Vec<u8> {
    let mut writer = ResultsWriter::start(Vec::new(), windows.len());
    for window in windows {
        match window {
            WindowResult::Ran { setup, calls, observation, aborted } => {
                writer.setup(setup.len());
                setup.iter().for_each(|value| write(&mut writer, value));
                writer.calls(calls.len());
                calls.iter().for_each(|value| write(&mut writer, value));
                writer.observation(observation.len());
                observation.iter().for_each(|value| write(&mut writer, value));
                writer.end(*aborted);
            }
            WindowResult::Refused(why) => {
                writer.setup(2);
                writer.number(1);
                writer.refused(why);
            }
            WindowResult::Unsupported(why) => {
                writer.setup(1);
                writer.unsupported(why);
            }
        }
    }
    writer.finish().unwrap()
}

fn encode(windows: &[WindowResult<'_>]) -> Vec<u8> {
    encode_by(windows, ResultsWriter::value)
}

/// Writes a value part by part.
fn write_parts(writer: &mut ResultsWriter, value: &Value<'_>) {
    let leaked = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    match value {
        Value::Null => writer.null(),
        Value::Bool(flag) => writer.flag(*flag),
        Value::Int(number) => writer.number(*number),
        Value::Text(text) => writer.text(text),
        Value::Errno(number) => writer.errno(*number),
        Value::Signal(number) => writer.signal(*number),
        Value::Opaque { sort, id } => writer.opaque(leaked(sort), *id),
        Value::Time(nanoseconds) => writer.time(*nanoseconds),
        Value::Struct(fields) => {
            writer.structure(fields.len() as u8);
            for (name, value) in fields {
                writer.field(leaked(name));
                write_parts(writer, value);
            }
        }
        Value::Seq(items) => {
            let mut sequence = writer.sequence();
            for item in items {
                sequence.next();
                write_parts(writer, item);
            }
            writer.end_sequence(sequence);
        }
    }
}

/// A value that borrows nothing.
fn owned(value: &Value<'_>) -> Value<'static> {
    let text = |text: &str| text.to_owned().into();
    match value {
        Value::Null => Value::Null,
        Value::Bool(flag) => Value::Bool(*flag),
        Value::Int(number) => Value::Int(*number),
        Value::Text(content) => Value::Text(text(content)),
        Value::Errno(number) => Value::Errno(*number),
        Value::Signal(number) => Value::Signal(*number),
        Value::Opaque { sort, id } => Value::Opaque { sort: text(sort), id: *id },
        Value::Time(nanoseconds) => Value::Time(*nanoseconds),
        Value::Struct(fields) => Value::Struct(fields.iter().map(|(name, value)| (text(name), owned(value))).collect()),
        Value::Seq(items) => Value::Seq(items.iter().map(owned).collect()),
    }
}

/// The batch that a plan was read from. A plan does not keep the calls' threads; in these tests they are their cores.
fn batch_of(plan: &Plan<'_>) -> Batch {
    let arguments = |call: &Call<'_>| plan.arguments(call).iter().map(owned).collect();
    let step = |call: &Call<'_>| Step {
        shape: call.shape,
        process: call.process,
        core: call.core,
        arguments: arguments(call),
        expected: owned(&call.expected),
        also: Vec::new(),
    };
    let placed = |call: &Call<'_>| {
        let core = call.core.unwrap();
        PlacedCall { shape: call.shape, process: call.process, thread: core, core, arguments: arguments(call) }
    };
    let tests = (0..plan.test_count()).map(|number| plan.test(number));
    Batch {
        shapes: plan
            .shapes
            .iter()
            .map(|shape| Shape {
                call: shape.call.to_string().into(),
                parameters: shape.parameters.iter().map(|name| name.to_string().into()).collect(),
            })
            .collect(),
        tests: tests
            .map(|test| Test {
                calls: test.calls.iter().map(placed).collect(),
                setup: test.setup.iter().map(step).collect(),
                observe: test.observe.iter().map(step).collect(),
            })
            .collect(),
        windows: plan.windows().map(|(test, order)| Window { test, order: order.to_vec() }).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_batch_survives(batch in any_batch()) {
        let bytes = batch.encode().unwrap();
        let plan = Plan::decode(&bytes).unwrap();
        prop_assert_eq!(plan.window_count(), batch.windows.len());
        prop_assert_eq!(batch_of(&plan), batch);
    }

    #[test]
    fn results_survive(windows in vec(any_result(), 0..5)) {
        let bytes = encode(&windows);
        prop_assert_eq!(results::decode(&bytes), Ok(windows));
    }

    #[test]
    fn a_value_written_part_by_part_is_the_one_that_was_built(windows in vec(any_result(), 0..5)) {
        let bytes = encode_by(&windows, write_parts);
        prop_assert_eq!(results::decode(&bytes), Ok(windows));
    }

    #[test]
    fn what_was_written_can_be_read_at_once(value in any_value(), behind in any_value()) {
        let mut writer = ResultsWriter::start(Vec::new(), 1);
        writer.setup(2);
        let place = writer.place();
        write_parts(&mut writer, &value);
        writer.value(&behind);
        prop_assert_eq!(writer.value_at(place), Ok(value));
    }

    #[test]
    fn a_batch_cut_off_or_prolonged_is_refused(batch in any_batch(), cut in any::<prop::sample::Index>(), more in any::<u8>()) {
        let mut bytes = batch.encode().unwrap();
        prop_assert!(Plan::decode(&bytes[..cut.index(bytes.len())]).is_err());
        bytes.push(more);
        prop_assert!(Plan::decode(&bytes).is_err());
    }

    #[test]
    fn results_cut_off_are_refused(windows in vec(any_result(), 0..5), cut in any::<prop::sample::Index>()) {
        let bytes = encode(&windows);
        prop_assert!(results::decode(&bytes[..cut.index(bytes.len())]).is_err());
    }

    #[test]
    fn changed_bytes_never_panic(batch in any_batch(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = batch.encode().unwrap();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(changed) = Plan::decode(&bytes) {
            // What is accepted can be used: all tests and calls are there.
            for (test, order) in changed.windows() {
                let test = changed.test(test);
                prop_assert_eq!(order.len(), test.calls.len());
                for call in test.calls.iter().chain(test.setup).chain(test.observe) {
                    prop_assert_eq!(changed.arguments(call).len(), changed.shapes[call.shape].parameters.len());
                }
            }
        }
    }

    #[test]
    fn arbitrary_bytes_behind_the_mark_never_panic(mut bytes in vec(any::<u8>(), 0..200)) {
        let mut document = b"CMTBATCH\x01\0\0\0".to_vec();
        document.append(&mut bytes.clone());
        let _ = Plan::decode(&document);
        let mut document = b"CMTRESLT\x01\0\0\0".to_vec();
        document.append(&mut bytes);
        let _ = results::decode(&document);
    }
}

#[test]
fn a_damaged_count_does_not_ask_for_memory() {
    let mut bytes = Batch::default().encode().unwrap();
    bytes[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(Plan::decode(&bytes).unwrap_err().to_string().contains("cannot be there"));
}

#[test]
fn another_version_is_named() {
    let mut bytes = Batch::default().encode().unwrap();
    bytes[8] = 9;
    assert_eq!(Plan::decode(&bytes).unwrap_err().to_string(), "a batch of version 9: expected 2");
}

#[test]
fn deep_nesting_is_refused() {
    let nested =
        |depth, wrap: fn(Value<'static>) -> Value<'static>| (0..depth).fold(Value::Null, |value, _| wrap(value));
    for wrap in [|value| Value::Seq(vec![value]), |value| Value::Struct(vec![("a".into(), value)])] {
        for (depth, is_read) in [(8, true), (9, false), (20, false)] {
            let value = nested(depth, wrap);
            let window =
                WindowResult::Ran { setup: vec![value.clone()], calls: vec![], observation: vec![], aborted: 0 };
            let bytes = encode(&[window]);
            let (found, json) = (results::decode(&bytes), Value::from_json(&value.to_json()));
            assert_eq!((found.is_ok(), json.is_ok()), (is_read, is_read), "{depth} levels");
            if !is_read {
                assert!(found.unwrap_err().to_string().contains("nested too deeply"));
                assert!(json.unwrap_err().to_string().contains("nested too deeply"));
            }
        }
    }
}

#[test]
fn a_table_of_texts_outside_of_the_document_is_told() {
    let bytes = Batch::default().encode().unwrap();
    for place in [0, 3, bytes.len() + 1, u32::MAX as usize] {
        let mut damaged = bytes.clone();
        damaged[12..16].copy_from_slice(&(place as u32).to_le_bytes());
        let said = Plan::decode(&damaged).unwrap_err().to_string();
        assert!(said.contains("the table of texts lies outside the document"), "{place}: {said}");
    }
}

/// More than the bytes that are left can hold, if only by one.
#[test]
fn a_count_of_windows_that_cannot_be_there_is_told() {
    let refused = WindowResult::Refused("no".to_owned());
    let mut bytes = encode(&[refused.clone(), refused]);
    bytes[16..20].copy_from_slice(&3_u32.to_le_bytes());
    let said = results::decode(&bytes).unwrap_err().to_string();
    assert!(said.contains("a count of 3 records that cannot be there"), "{said}");
}

#[test]
fn a_reason_that_is_too_long_is_cut_between_characters() {
    for (shift, expected) in [("", 4095), ("a", 4096), ("ab", 4094)] {
        let why = format!("{shift}{}", "\u{20ac}".repeat(2000));
        let bytes = encode(&[WindowResult::Refused(why.clone())]);
        let found = results::decode(&bytes).unwrap();
        assert_eq!(found, [WindowResult::Refused(why[..expected].to_owned())], "three bytes a character");
    }
}

#[test]
fn what_is_no_value_is_refused() {
    for text in [
        r#"{"time": "noon"}"#,
        r#"{"time": 1.5}"#,
        r#"{"errno": "EWHAT"}"#,
        r#"{"errno": 2}"#,
        r#"{"signal": "SIGWHAT"}"#,
        r#"{"sort": 1, "id": 1}"#,
        r#"{"sort": "Inum", "id": -1}"#,
        r#"{"sort": "Inum", "name": 1}"#,
        r#"{"struct": []}"#,
        r#"{"seq": {}}"#,
        r#"{"time": 1, "errno": "EPERM"}"#,
        r#"{"a": 1, "b": 2, "c": 3}"#,
        "{}",
        "[1]",
        "1.5",
    ] {
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        assert!(Value::from_json(&json).is_err(), "{text}");
        assert!(Value::from_json(&serde_json::json!({"seq": [json]})).is_err(), "{text} in a list");
    }
}

#[test]
fn every_kind_of_value_survives_as_json() {
    let text = r#"{"struct": {"a": null, "b": true, "c": -7, "d": "n0", "e": {"errno": "ENOENT"}, "f": {"signal": "SIGBUS"},
        "g": {"sort": "Inum", "id": 18446744073709551615}, "h": {"time": 3}, "i": {"seq": [1, {"seq": []}]}}}"#;
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(Value::from_json(&json).unwrap().to_json(), json);
    assert_eq!(Value::Errno(4000).to_json().to_string(), r#"{"errno":"E4000"}"#);
}
