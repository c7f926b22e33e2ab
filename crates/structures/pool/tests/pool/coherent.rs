//! "Coherent" chosen on memory that is not: the self-test says so, and so does the checker of a protocol that runs on it.

use pool::emulated::{Emulated, Kind};
use pool::ring::{Layout, Receiver, Sender};
use pool::{Answerer, CoherenceTest, Coherent, Judgement, Question};

const TEST: CoherenceTest = CoherenceTest { at: 0, domain_count: 3 };

fn judge(memory: &Emulated) -> Judgement {
    let mut answerers: Vec<_> =
        (0..2).map(|domain| Answerer::new(memory.domain(domain), TEST, domain).unwrap()).collect();
    let mut question = Question::ask(memory.domain(2), TEST, 2, 1000).unwrap();
    for _ in 0..1000 {
        for answerer in &mut answerers {
            answerer.answer().unwrap();
        }
        match question.look().unwrap() {
            Judgement::Unanswered => {}
            judgement => return judgement,
        }
    }
    Judgement::Unanswered
}

#[test]
fn memory_that_is_not_coherent_is_found_out() {
    for seed in 0..20 {
        let memory = Emulated::new(CoherenceTest::bytes(3), 3, seed).unwrap();
        let judgement = judge(&memory);
        assert!(matches!(judgement, Judgement::NotCoherent { .. }), "seed {seed}: {judgement}");
        assert_eq!(memory.report_count(), 0, "the test itself is in order: {}", memory.reports()[0]);
    }
}

#[test]
fn a_test_that_is_not_answered_says_so() {
    let memory = Emulated::calm(CoherenceTest::bytes(3), 3).unwrap();
    let mut question = Question::ask(memory.domain(2), TEST, 2, 1000).unwrap();
    let judgement = question.look().unwrap();
    assert_eq!(judgement.to_string(), "no other domain has answered: whether memory is coherent is unknown");
}

#[test]
fn a_ring_without_flushes_is_reported() {
    let layout = Layout { at: 0, line_count: 4, salt: 1, sender: 0, receiver: 1, patience: 9 };
    let memory = Emulated::calm(Layout::bytes(4), 2).unwrap();
    let mut sender = Sender::new(Coherent::new(memory.domain(0)), layout).unwrap();
    let mut receiver = Receiver::new(Coherent::new(memory.domain(1)), layout).unwrap();
    assert_eq!(receiver.receive(&mut [0; 64]), Ok(None));
    sender.send(b"lost").unwrap();
    assert_eq!(receiver.receive(&mut [0; 64]), Ok(None));
    let mut kinds: Vec<Kind> = memory.reports().iter().map(|report| report.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, [Kind::MissingInvalidate, Kind::LeftUnwritten]);
}
