//! Pools in files, and what others may have done to them. All memory here is the machine's own, which is coherent.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pool::file::{Pool, Reason, create, inspect, path_of};
use pool::log::{LogLayout, LogReader, LogWriter};
use pool::ring::{Layout, Receiver, Sender};
use pool::{Coherent, Fault, Judgement, LINE_BYTES, Memory};

const SIZE: usize = 1 << 16;

/// A file of this test's own, which is removed in the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        Temporary(path_of(&format!("pool-test-{name}-{}", std::process::id())))
    }

    fn pool(name: &str) -> Temporary {
        let file = Temporary::new(name);
        create(&file.0, SIZE, 2).unwrap();
        file
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn overwrite(&self, at: u64, bytes: &[u8]) {
        OpenOptions::new().write(true).open(&self.0).unwrap().write_all_at(bytes, at).unwrap();
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn message_of<T>(outcome: Result<T, pool::file::PoolError>) -> String {
    outcome.err().expect("an error").to_string()
}

#[test]
fn two_domains_share_a_pool_over_rings_and_logs() {
    let file = Temporary::pool("shared");
    let (one, other) = (Pool::join(file.path(), 0).unwrap(), Pool::join(file.path(), 1).unwrap());
    let at = one.first_free();
    let ring = Layout { at, line_count: 8, salt: 1, sender: 0, receiver: 1, patience: 100 };
    let mut sender = Sender::new(one.memory(), ring).unwrap();
    let mut receiver = Receiver::new(Coherent::new(other.memory()), ring).unwrap();
    let mut buffer = [0; 224];
    for number in 0..100_u8 {
        let message = vec![number; usize::from(number) * 2];
        sender.send(&message).unwrap();
        let length = receiver.receive(&mut buffer).unwrap().unwrap();
        assert_eq!(buffer[..length], message);
        assert_eq!(receiver.receive(&mut buffer), Ok(None));
    }
    let log = LogLayout { at: at + Layout::bytes(8), entry_count: 4, salt: 1, writer: 0, patience: 100 };
    let mut writer = LogWriter::new(one.memory(), log).unwrap();
    let mut reader = LogReader::new(other.memory(), log).unwrap();
    for number in 0..20_u8 {
        writer.append(&[number; 100]).unwrap();
        assert_eq!(reader.read(&mut buffer), Ok(Some(100)));
        assert_eq!((buffer[0], buffer[99]), (number, number));
    }
    let status = inspect(file.path()).unwrap();
    assert_eq!((status.size_bytes, status.domain_count, status.first_free), (SIZE, 2, at));
    assert!(status.members.iter().all(|member| member.is_joined && member.process == u64::from(std::process::id())));
    drop(other);
    let status = inspect(file.path()).unwrap();
    assert_eq!(status.members.iter().map(|member| member.is_joined).collect::<Vec<_>>(), [true, false]);
    assert_eq!(Pool::join(file.path(), 1).unwrap().domain(), 1);
    assert_eq!(inspect(file.path()).unwrap().members[1].incarnation, 2);
}

#[test]
fn what_cannot_be_made_or_joined_says_why() {
    let file = Temporary::new("refused");
    let path = file.path();
    assert!(message_of(create(path, 1024, 2)).contains("expected a pool of at least 4160 bytes, got 1024"));
    assert!(message_of(create(path, SIZE, 257)).ends_with("expected 1 to 256 domains, got 257"));
    assert!(message_of(create(path, SIZE, 0)).ends_with("expected 1 to 256 domains, got 0"));
    assert!(message_of(Pool::join(path, 0)).contains("open: No such file or directory"));
    assert!(matches!(Pool::join("/dev/shm".as_ref(), 0).unwrap_err().reason, Reason::System("open", _)));

    std::fs::write(path, b"letters that somebody wants to keep, in a file that is no pool at all ......").unwrap();
    assert!(message_of(create(path, SIZE, 2)).contains("expected a pool, got another file"));
    assert!(message_of(Pool::join(path, 0)).contains("expected a pool, got another file"));
    std::fs::write(path, b"short").unwrap();
    assert!(message_of(Pool::join(path, 0)).contains("expected a pool of at least 64 bytes, got 5"));

    std::fs::remove_file(path).unwrap();
    create(path, SIZE, 2).unwrap();
    assert!(message_of(Pool::join(path, 2)).ends_with("expected a domain below 2, got 2"));
    file.overwrite(8, &2_u32.to_le_bytes());
    assert!(message_of(Pool::join(path, 0)).contains("expected a pool of version 1, got version 2"));
    create(path, SIZE, 2).unwrap();
    OpenOptions::new().write(true).open(path).unwrap().set_len(SIZE as u64 / 2).unwrap();
    assert!(message_of(Pool::join(path, 0)).contains("expected a pool of at least 65536 bytes, got 32768"));
}

#[test]
fn a_number_that_is_in_use_is_refused_until_it_is_free() {
    let file = Temporary::pool("in-use");
    let first = Pool::join(file.path(), 1).unwrap();
    let process = std::process::id();
    let expected =
        format!("expected domain 1 to be free, but process {process} is in it: end that, or join as another");
    assert!(message_of(Pool::join(file.path(), 1)).ends_with(&expected));
    assert!(message_of(Pool::take_over(file.path(), 1)).ends_with(&expected));
    assert!(message_of(create(file.path(), SIZE, 2)).contains("but domain 1 has joined: end it first"));
    drop(first);
    drop(Pool::join(file.path(), 1).unwrap());

    // As a process of another host leaves its line.
    for (word, value) in [1_u64, 77, 4321, 9].into_iter().enumerate() {
        file.overwrite(LINE_BYTES as u64 * 2 + 8 * word as u64, &value.to_le_bytes());
    }
    assert!(message_of(Pool::join(file.path(), 1)).contains("but process 4321 of another host has joined as it"));
    assert!(inspect(file.path()).unwrap().members[0].is_joined);
    drop(Pool::take_over(file.path(), 1).unwrap());
    assert_eq!(inspect(file.path()).unwrap().members[0].incarnation, 10);
}

#[test]
fn who_is_about_to_join_has_not_left() {
    let file = Temporary::pool("used-again");
    let first = Pool::join(file.path(), 0).unwrap();
    assert!(!first.has_left(1), "none has joined yet");
    drop(Pool::join(file.path(), 1).unwrap());
    assert!(first.has_left(1));
    drop(first);
    let first = Pool::join(file.path(), 0).unwrap();
    assert!(!first.has_left(1), "it was there in a time before");
    let second = Pool::join(file.path(), 1).unwrap();
    assert!(!first.has_left(1) && !second.has_left(0));
    drop(second);
    assert!(first.has_left(1));
}

#[test]
fn every_wrong_bit_of_a_header_is_noticed() {
    let file = Temporary::pool("bits");
    let mut header = [0; LINE_BYTES];
    OpenOptions::new().read(true).open(file.path()).unwrap().read_exact_at(&mut header, 0).unwrap();
    for bit in 0..8 * LINE_BYTES {
        let mut wrong = header;
        wrong[bit / 8] ^= 1 << (bit % 8);
        file.overwrite(0, &wrong);
        let reason = Pool::join(file.path(), 0).expect_err("a wrong bit").reason;
        let is_named = matches!(reason, Reason::NoPool | Reason::OtherVersion(_) | Reason::Damaged);
        assert!(is_named, "bit {bit}: {reason:?}");
    }
    file.overwrite(0, &header);
    assert!(Pool::join(file.path(), 0).is_ok());
}

#[test]
fn a_file_that_is_made_shorter_while_it_is_mapped_is_an_error() {
    let file = Temporary::pool("shorter");
    let (pool, other) = (Pool::join(file.path(), 0).unwrap(), Temporary::pool("whole"));
    let whole = Pool::join(other.path(), 0).unwrap();
    let at = pool.first_free() + 4096;
    pool.memory().write(at, b"data").unwrap();
    OpenOptions::new().write(true).open(file.path()).unwrap().set_len(LINE_BYTES as u64).unwrap();
    let mut bytes = [0; 4];
    let memory = pool.memory();
    assert_eq!(memory.read(at, &mut bytes), Err(Fault::Truncated));
    assert_eq!(memory.write(at, &bytes), Err(Fault::Truncated));
    assert_eq!(memory.write_back(at, 4), Err(Fault::Truncated));
    assert_eq!(memory.drain(), Err(Fault::Truncated));
    let text = Fault::Truncated.to_string();
    assert_eq!(text, "expected the pool's file to keep its size, but it was made shorter: create the pool again");
    // Other pools of the process are as they were.
    whole.memory().write(at, b"data").unwrap();
    whole.memory().read(at, &mut bytes).unwrap();
    assert_eq!(&bytes, b"data");
    drop(pool);
    assert!(Pool::join(file.path(), 0).is_err());
}

#[test]
fn an_access_past_the_pool_is_an_error() {
    let file = Temporary::pool("past");
    let pool = Pool::join(file.path(), 0).unwrap();
    let expected = Err(Fault::OutOfBounds { at: SIZE - 4, length: 8, size_bytes: SIZE });
    assert_eq!(pool.memory().write(SIZE - 4, &[0; 8]), expected);
    assert_eq!(pool.memory().invalidate(SIZE - 4, 8), expected);
}

#[test]
fn a_coherent_machine_is_found_to_be_one() {
    let file = Temporary::pool("coherent");
    let (one, other) = (Pool::join(file.path(), 0).unwrap(), Pool::join(file.path(), 1).unwrap());
    let mut answerer = one.answerer().unwrap();
    let mut question = other.ask_for_coherence().unwrap();
    assert_eq!(question.look(), Ok(Judgement::Unanswered));
    let judgement = loop {
        answerer.answer().unwrap();
        match question.look().unwrap() {
            Judgement::Unanswered => {}
            judgement => break judgement,
        }
    };
    assert_eq!(judgement, Judgement::Coherent);
    assert!(!answerer.answer().unwrap());
}
