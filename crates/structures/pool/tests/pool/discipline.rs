//! What the checker says of each way to break the discipline, and that it says nothing of what keeps it. Caches are calm here: faults are
//! found by the order of calls, not by luck.

use pool::emulated::{Domain, Emulated, Kind};
use pool::{Fault, LINE_BYTES, Memory, Use};

const WORD: usize = 8;

struct Two {
    memory: Emulated,
    writer: Domain,
    reader: Domain,
}

fn two() -> Two {
    let memory = Emulated::calm(4 * LINE_BYTES, 2).unwrap();
    Two { writer: memory.domain(0), reader: memory.domain(1), memory }
}

impl Two {
    /// What was found, each kind once.
    fn kinds(&self) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = self.memory.reports().iter().map(|report| report.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    fn write(&self, at: usize, value: u64) {
        self.writer.write(at, &value.to_le_bytes()).unwrap();
    }

    fn release(&self, at: usize) {
        self.writer.write_back(at, WORD).unwrap();
        self.writer.drain().unwrap();
    }

    fn message(&self, number: u64) {
        self.writer.sent(1, number);
        self.reader.received(1, number);
    }

    fn read(&self, at: usize) -> u64 {
        read(&self.reader, at)
    }

    fn acquire(&self, at: usize) -> u64 {
        self.reader.invalidate(at, WORD).unwrap();
        self.read(at)
    }
}

fn read(domain: &Domain, at: usize) -> u64 {
    let mut bytes = [0; WORD];
    domain.read(at, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

#[test]
fn all_four_steps_in_order_are_right() {
    let two = two();
    for number in 1..5 {
        two.write(0, number);
        two.release(0);
        two.message(number);
        assert_eq!(two.acquire(0), number);
        // The reader's turn to write: the line changes hands.
        two.reader.write(0, &(number * 10).to_le_bytes()).unwrap();
        two.reader.write_back(0, WORD).unwrap();
        two.reader.drain().unwrap();
        two.reader.sent(2, number);
        two.writer.received(2, number);
        two.writer.invalidate(0, WORD).unwrap();
        assert_eq!(read(&two.writer, 0), number * 10);
    }
    two.memory.end();
    assert_eq!(two.kinds(), []);
}

#[test]
fn a_step_that_is_left_out_is_named_and_old_data_is_read() {
    let write_back = two();
    write_back.write(0, 1);
    write_back.message(1);
    assert_eq!((write_back.acquire(0), write_back.kinds()), (0, vec![Kind::MissingWriteBack]));

    let early = two();
    early.write(0, 1);
    early.writer.write_back(0, WORD).unwrap();
    early.write(8, 2);
    early.writer.drain().unwrap();
    early.message(1);
    assert_eq!((early.acquire(8), early.kinds()), (2, vec![Kind::EarlyWriteBack]));

    let drain = two();
    drain.write(0, 1);
    drain.writer.write_back(0, WORD).unwrap();
    drain.message(1);
    assert_eq!((drain.acquire(0), drain.kinds()), (0, vec![Kind::MissingDrain]));

    let late = two();
    late.write(0, 1);
    late.message(1);
    late.release(0);
    assert_eq!((late.acquire(0), late.kinds()), (1, vec![Kind::LateWriteBack]));

    let invalidate = two();
    assert_eq!(invalidate.read(0), 0);
    invalidate.reader.sent(2, 1);
    invalidate.writer.received(2, 1);
    invalidate.write(0, 1);
    invalidate.release(0);
    invalidate.message(1);
    assert_eq!((invalidate.read(0), invalidate.kinds()), (0, vec![Kind::MissingInvalidate]));

    let before = two();
    before.write(0, 1);
    before.release(0);
    before.reader.invalidate(0, WORD).unwrap();
    before.message(1);
    assert_eq!((before.read(0), before.kinds()), (1, vec![Kind::EarlyInvalidate]));
}

#[test]
fn domains_without_a_message_between_them_are_named() {
    let race = two();
    race.write(0, 1);
    race.release(0);
    assert_eq!((race.acquire(0), race.kinds()), (1, vec![Kind::Race]));

    let overtaken = two();
    assert_eq!(overtaken.read(0), 0);
    overtaken.write(0, 1);
    assert_eq!(overtaken.kinds(), [Kind::Race]);

    // Different words of one line: what is written back last undoes the other.
    let shared = two();
    shared.write(0, 1);
    shared.reader.write(8, &2_u64.to_le_bytes()).unwrap();
    shared.release(0);
    shared.reader.write_back(8, WORD).unwrap();
    shared.reader.drain().unwrap();
    assert_eq!(shared.memory.below(0)[..8], [0; 8], "the first domain's word is lost");
    assert!(shared.kinds().contains(&Kind::TwoWriters));

    let dirty = two();
    dirty.write(0, 1);
    dirty.writer.invalidate(0, WORD).unwrap();
    assert_eq!(dirty.kinds(), [Kind::InvalidatedWhileDirty]);
}

#[test]
fn flushes_that_change_nothing_are_waste() {
    let two = two();
    two.write(0, 1);
    two.release(0);
    assert_eq!(two.kinds(), []);
    two.writer.write_back(0, WORD).unwrap();
    assert_eq!(two.kinds(), [Kind::NeedlessWriteBack]);
    two.reader.invalidate(2 * LINE_BYTES, WORD).unwrap();
    assert_eq!(two.kinds(), [Kind::NeedlessWriteBack, Kind::NeedlessInvalidate]);
    assert!(two.kinds().into_iter().all(Kind::is_waste));
}

#[test]
fn lines_that_are_read_at_any_time_have_rules_of_their_own() {
    let declared = |used| {
        let two = two();
        two.writer.declare(0, LINE_BYTES, used).unwrap();
        two
    };
    let right = declared(Use::Register { writer: 0 });
    right.writer.write_version(0, &1_u64.to_le_bytes(), 1).unwrap();
    right.release(0);
    right.writer.promise();
    assert_eq!(right.acquire(0), 1);
    right.reader.accept(0, WORD, 1);
    assert_eq!(right.acquire(0), 1);
    right.memory.end();
    assert_eq!(right.kinds(), []);

    let unwritten = declared(Use::Register { writer: 0 });
    unwritten.write(0, 1);
    unwritten.writer.promise();
    assert_eq!(unwritten.kinds(), [Kind::LeftUnwritten]);

    let stranger = declared(Use::Register { writer: 1 });
    stranger.write(0, 1);
    assert_eq!(stranger.kinds(), [Kind::TwoWriters]);

    let twice = declared(Use::Register { writer: 0 });
    twice.acquire(0);
    twice.read(0);
    assert_eq!(twice.kinds(), [Kind::MissingInvalidate]);

    let other = declared(Use::Register { writer: 0 });
    other.writer.write_version(0, &1_u64.to_le_bytes(), 1).unwrap();
    other.release(0);
    other.acquire(0);
    other.reader.accept(0, WORD, 2);
    assert_eq!(other.kinds(), [Kind::OtherVersionAccepted]);

    let unread = declared(Use::Messages { writer: 0, reader: 1 });
    for version in 1..3 {
        unread.writer.write_version(0, &[version; LINE_BYTES], version.into()).unwrap();
        unread.release(0);
    }
    assert_eq!(unread.kinds(), [Kind::OverwrittenUnread]);
}

#[test]
fn halves_of_two_versions_are_torn() {
    use pool::emulated::turns::Turns;
    let memory = Emulated::calm(LINE_BYTES, 2).unwrap();
    let (writer, reader) = (memory.domain(0), memory.domain(1));
    let mut turns = Turns::new(vec![
        Box::new(move || {
            writer.declare(0, LINE_BYTES, Use::Register { writer: 0 }).unwrap();
            writer.write_version(0, &[1; LINE_BYTES], 1).unwrap();
            writer.write_back(0, LINE_BYTES).unwrap();
            writer.drain().unwrap();
        }),
        Box::new(move || {
            let mut bytes = [0; LINE_BYTES];
            reader.invalidate(0, LINE_BYTES).unwrap();
            reader.read(0, &mut bytes).unwrap();
            assert!(bytes.contains(&0) && bytes.contains(&1));
            reader.accept(0, LINE_BYTES, 1);
        }),
    ]);
    // The writer is in the middle when its half of the line goes to memory by itself.
    (0..5).for_each(|_| turns.step(0));
    memory.make(pool::emulated::Move::WriteBack { domain: 0, line: 0 });
    while turns.running().any(|number| number == 1) {
        turns.step(1);
    }
    let reports = memory.reports();
    assert_eq!(reports[0].kind, Kind::TornAccepted);
    assert!(reports[0].to_string().contains("torn line accepted: line at 0, domain 1 at "), "{}", reports[0]);
    while turns.running().next().is_some() {
        turns.step(0);
    }
}

#[test]
fn what_a_crash_loses_is_what_was_not_written_back() {
    let two = two();
    two.write(0, 1);
    two.release(0);
    two.write(LINE_BYTES, 2);
    two.memory.crash(0);
    assert_eq!(two.writer.read(0, &mut [0]), Err(Fault::Crashed));
    assert_eq!((two.memory.below(0)[0], two.memory.below(1)[0]), (1, 0));
    two.memory.revive(0);
    assert_eq!(read(&two.writer, 0), 1);
}

#[test]
fn an_access_past_the_end_is_an_error() {
    let two = two();
    let end = 4 * LINE_BYTES;
    for (at, length) in [(end, 1), (end - 1, 2), (usize::MAX, 8), (0, end + 1)] {
        let expected = Err(Fault::OutOfBounds { at, length, size_bytes: end });
        assert_eq!(two.writer.write(at, &vec![0; length]), expected);
        assert_eq!(two.writer.read(at, &mut vec![0; length]), expected);
        assert_eq!(two.writer.write_back(at, length), expected);
        assert_eq!(two.writer.invalidate(at, length), expected);
        assert_eq!(two.writer.declare(at, length, Use::Data), expected);
    }
    let text = two.writer.read(end, &mut [0]).unwrap_err().to_string();
    assert_eq!(text, "expected an access within the 256 bytes of the pool, got 1 bytes at 256");
    assert_eq!(two.memory.report_count(), 0);
}
