//! The interpreter over a target that is a library: one shared register, whose actors are threads of this process.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use runner::arguments::Arguments;
use runner::crew::{Crew, Slots};
use runner::place::{ACTOR_COUNT, Place};
use runner::slot::{Slot, Waiting};
use runner::target::{Agents, Execution, Marks, Signature, Target};
use runner::window::Interpreter;
use wire::batch::{Batch, PlacedCall, Shape, Step, Test, Window};
use wire::plan::Plan;
use wire::results::{self, ResultsWriter, WindowResult};
use wire::value::Value;

const CORE_COUNT: usize = 2;
const SWAP: usize = 0;
const TICKET: usize = 1;

/// The register under test, and which thread made all calls and the marked ones.
static REGISTER: AtomicI64 = AtomicI64::new(0);
static MADE_BY: Mutex<Vec<thread::ThreadId>> = Mutex::new(Vec::new());
static MARKED_BY: Mutex<Vec<thread::ThreadId>> = Mutex::new(Vec::new());

#[derive(Default)]
struct Swap {
    new: i64,
}

/// `swap(new)` returns what was there before; `ticket()` returns a value that the target chooses.
struct Register;

impl Execution for Register {
    type Operation = Swap;

    fn execute(operation: &mut Swap, marks: Marks) -> i64 {
        MADE_BY.lock().unwrap().push(thread::current().id());
        if marks == Marks::Around {
            MARKED_BY.lock().unwrap().push(thread::current().id());
        }
        REGISTER.swap(operation.new, Ordering::SeqCst)
    }
}

impl Target for Register {
    fn signatures(&self) -> &[Signature] {
        &[Signature { name: "swap", parameters: &["new"] }, Signature { name: "ticket", parameters: &[] }]
    }

    fn fresh(&mut self, _: &mut Crew<Self>, _: Agents, _: impl Iterator<Item = usize>) -> Result<(), String> {
        REGISTER.store(0, Ordering::SeqCst);
        Ok(())
    }

    fn place(&self, _: usize, home: Place, _: Place) -> Place {
        home
    }

    fn prepare(
        &mut self,
        operation: &mut Swap,
        _: Place,
        call: usize,
        arguments: &Arguments<'_>,
    ) -> Result<(), String> {
        operation.new = if call == SWAP { arguments.number(0)? } else { 4711 };
        Ok(())
    }

    fn finish(
        &mut self,
        _: &mut Crew<Self>,
        _: Place,
        call: usize,
        result: i64,
        results: &mut ResultsWriter,
    ) -> Result<(), String> {
        if call == TICKET {
            results.opaque("Ticket", 4711)
        } else {
            results.number(result)
        }
        Ok(())
    }

    fn clean(&mut self, _: &mut Crew<Self>, _: Agents) -> Result<(), String> {
        Ok(())
    }
}

/// One interpreter for all tests: actors and register are shared by the whole process.
fn interpreter() -> &'static Mutex<Interpreter<Register>> {
    static INTERPRETER: OnceLock<Mutex<Interpreter<Register>>> = OnceLock::new();
    INTERPRETER.get_or_init(|| {
        let slots: &'static Slots<Swap> =
            Box::leak(Box::new(std::array::from_fn::<_, ACTOR_COUNT, _>(|_| Slot::default())));
        for place in Place::all(CORE_COUNT).filter(|place| *place != Place::Home { process: 0 }) {
            let waiting = if matches!(place, Place::Home { .. }) { Waiting::Asleep } else { Waiting::Spinning };
            // SAFETY: each slot has one thread.
            thread::spawn(move || unsafe { slots[place.index()].serve::<Register>(waiting) });
        }
        // SAFETY: the only crew over these slots.
        let mut interpreter = Interpreter::new(Register, unsafe { Crew::new(slots, CORE_COUNT) });
        interpreter.warm_up();
        Mutex::new(interpreter)
    })
}

fn run(batch: &Batch) -> Vec<WindowResult<'static>> {
    let mut started = Vec::new();
    let mut interpreter = interpreter().lock().unwrap();
    MARKED_BY.lock().unwrap().clear();
    let batch = batch.encode().unwrap();
    let plan = Plan::decode(&batch).unwrap();
    let bytes = interpreter.run(&plan, Vec::new(), |window| started.push(window)).unwrap();
    assert_eq!(started, (0..plan.window_count()).collect::<Vec<_>>());
    results::decode(Vec::leak(bytes)).unwrap()
}

fn swap(process: u8, core: u8, new: Value<'static>) -> PlacedCall {
    PlacedCall { shape: 0, process, thread: 0, core, arguments: vec![new] }
}

fn step(process: u8, shape: usize, arguments: Vec<Value<'static>>, expected: Value<'static>) -> Step {
    Step { shape, process, core: None, arguments, expected, also: Vec::new() }
}

/// A batch of one test with the calls `swap(new)` and `ticket()`, run in the given orders.
fn batch(test: Test, orders: &[&[u8]]) -> Batch {
    Batch {
        shapes: vec![
            Shape { call: "swap".into(), parameters: vec!["new".into()] },
            Shape { call: "ticket".into(), parameters: vec![] },
            Shape { call: "fly".into(), parameters: vec![] },
            Shape { call: "swap".into(), parameters: vec!["old".into()] },
        ],
        tests: vec![test],
        windows: orders.iter().map(|order| Window { test: 0, order: order.to_vec() }).collect(),
    }
}

fn refusal(test: Test) -> String {
    match run(&batch(test, &[&[0]])).remove(0) {
        WindowResult::Refused(why) => why,
        ran => panic!("expected a refusal, got {ran:?}"),
    }
}

#[test]
fn calls_run_in_the_order_asked_for_and_results_stand_in_the_test_s() {
    let test = Test {
        calls: vec![swap(0, 0, Value::Int(1)), swap(1, 1, Value::Int(2))],
        setup: vec![step(0, 0, vec![Value::Int(9)], Value::Int(0))],
        observe: vec![step(1, 0, vec![Value::Int(0)], Value::Null)],
    };
    let ran = |calls: [i64; 2], left: i64| WindowResult::Ran {
        setup: vec![Value::Int(0)],
        calls: calls.map(Value::Int).to_vec(),
        observation: vec![Value::Int(left)],
        aborted: 0,
    };
    assert_eq!(run(&batch(test, &[&[0, 1], &[1, 0], &[0, 1]])), [ran([9, 1], 2), ran([2, 9], 1), ran([9, 1], 2)]);
}

#[test]
fn each_call_is_made_by_a_worker_of_its_own() {
    let test = Test { calls: vec![swap(0, 0, Value::Int(1)), swap(0, 1, Value::Int(2))], ..Test::default() };
    let mut interpreter = interpreter().lock().unwrap();
    MARKED_BY.lock().unwrap().clear();
    let bytes = batch(test, &[&[0, 1], &[0, 1]]).encode().unwrap();
    interpreter.run(&Plan::decode(&bytes).unwrap(), Vec::new(), |_| ()).unwrap();
    let marked = MARKED_BY.lock().unwrap().clone();
    assert_eq!(marked.len(), 4);
    assert_eq!(marked[..2], marked[2..]);
    assert_ne!(marked[0], marked[1]);
    assert!(!marked.contains(&thread::current().id()));
}

#[test]
fn a_step_is_made_where_it_is_told_to_be_and_without_marks() {
    let at = |process, core| Step { core: Some(core), ..step(process, 0, vec![Value::Int(1)], Value::Null) };
    let sequence = Test { setup: vec![at(0, 0), at(0, 1), at(1, 1), at(0, 0)], ..Test::default() };
    let mut interpreter = interpreter().lock().unwrap();
    MARKED_BY.lock().unwrap().clear();
    MADE_BY.lock().unwrap().clear();
    let bytes = batch(sequence, &[&[]]).encode().unwrap();
    interpreter.run(&Plan::decode(&bytes).unwrap(), Vec::new(), |_| ()).unwrap();
    let made = MADE_BY.lock().unwrap().clone();
    assert_eq!(made[0], made[3]);
    let [first, second, third] = [made[0], made[1], made[2]];
    assert!(first != second && second != third && third != first);
    assert!(!made.contains(&thread::current().id()));
    assert!(MARKED_BY.lock().unwrap().is_empty());
}

#[test]
fn what_the_set_up_returned_stands_for_its_name_later() {
    let ticket = Value::Opaque { sort: "Ticket".into(), id: 0 };
    let test = Test {
        calls: vec![swap(0, 0, ticket.clone())],
        setup: vec![step(0, 1, vec![], ticket)],
        observe: vec![step(0, 0, vec![Value::Int(0)], Value::Null)],
    };
    let WindowResult::Ran { observation, .. } = run(&batch(test, &[&[0]])).remove(0) else { panic!("refused") };
    assert_eq!(observation, [Value::Int(4711)]);
}

#[test]
fn what_cannot_be_run_is_refused_with_the_reason() {
    let one = |call: PlacedCall| Test { calls: vec![call], ..Test::default() };
    assert_eq!(refusal(one(swap(0, 2, Value::Int(1)))), "core 2: this runner has 2, numbered from 0");
    assert_eq!(refusal(one(swap(2, 0, Value::Int(1)))), "process 2: this runner has 2, numbered from 0");
    let unknown = PlacedCall { shape: 2, arguments: vec![], ..swap(0, 0, Value::Null) };
    assert_eq!(refusal(one(unknown)), "unknown call fly()");
    assert_eq!(refusal(one(PlacedCall { shape: 3, ..swap(0, 0, Value::Int(1)) })), "unknown call swap(old)");
    assert_eq!(refusal(one(swap(0, 0, Value::Bool(true)))), "swap: argument new: expected a number, got true");
    let unbound = Value::Opaque { sort: "Ticket".into(), id: 3 };
    assert!(refusal(one(swap(0, 0, unbound))).contains("expected a value that the set-up returned"));
    let step = Step { core: Some(2), ..step(0, 0, vec![Value::Int(0)], Value::Null) };
    let far = Test { calls: vec![swap(0, 0, Value::Int(1))], setup: vec![step], ..Test::default() };
    assert_eq!(refusal(far), "core 2: this runner has 2, numbered from 0");
    let both = Test { calls: vec![swap(0, 1, Value::Int(1)), swap(1, 1, Value::Int(1))], ..Test::default() };
    let refused = run(&batch(both, &[&[0, 1]])).remove(0);
    assert_eq!(refused, WindowResult::Refused("core 1: two calls on one core".to_owned()));
}

#[test]
fn a_refused_window_does_not_stop_the_others() {
    let mut mixed = batch(Test { calls: vec![swap(0, 0, Value::Null)], ..Test::default() }, &[&[0]]);
    mixed.tests.push(Test { calls: vec![swap(0, 0, Value::Int(1))], ..Test::default() });
    mixed.windows.push(Window { test: 1, order: vec![0] });
    let results = run(&mixed);
    assert!(matches!(results[0], WindowResult::Refused(_)));
    assert!(matches!(results[1], WindowResult::Ran { .. }));
}
