//! A stay in a pool as one of its domains.

use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use pool::file::{Pool, inspect};
use pool::{Answerer, Fault, Judgement, LINE_BYTES, Memory, Question};

use crate::json;
use crate::options::JoinOptions;

/// Between two looks at the lines of the self-test.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// The self-test, with both of its sides.
struct SelfTest<M> {
    /// None once it is answered.
    question: Option<Question<M>>,
    answerer: Answerer<M>,
}

impl<M: Memory> SelfTest<M> {
    /// Answers others, and looks for answers: what they say, once.
    fn go_on(&mut self) -> Result<Option<Judgement>, Fault> {
        self.answerer.answer()?;
        let Some(question) = &mut self.question else { return Ok(None) };
        let judgement = question.look()?;
        if judgement == Judgement::Unanswered {
            return Ok(None);
        }
        self.question = None;
        Ok(Some(judgement))
    }
}

/// What is said of memory, or why the stay ends.
fn said(judgement: Judgement, is_coherent: bool) -> Result<&'static str, String> {
    match judgement {
        Judgement::Coherent => Ok("coherent"),
        Judgement::NotCoherent { .. } if is_coherent => Err(judgement.to_string()),
        Judgement::NotCoherent { .. } => Ok("not coherent"),
        Judgement::Unanswered => Ok("unknown"),
    }
}

/// Prints a line, as soon as it is said.
fn say(is_json: bool, json: &str, plain: &str) -> Result<(), String> {
    crate::say(if is_json { json } else { plain })
}

/// `pool join`.
pub(crate) fn join(options: &JoinOptions) -> Result<(), String> {
    let explained = |fault: Fault| format!("{}: {fault}", options.file.display());
    // Before the number is taken: a signal in between leaves nothing behind.
    let ends = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect::<SigSet>();
    let failed = |error: nix::Error| format!("signals: {}", error.desc());
    ends.thread_block().map_err(failed)?;
    let signals = SignalFd::with_flags(&ends, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map_err(failed)?;
    let enter = if options.takes_over { Pool::take_over } else { Pool::join };
    let pool = enter(&options.file, options.domain).map_err(|error| error.to_string())?;
    let member = inspect(&options.file).map_err(|error| error.to_string())?.members.into_iter();
    let incarnation = member.filter(|it| it.domain == options.domain).map(|it| it.incarnation).next().unwrap_or(0);
    say(
        options.is_json,
        &format!(
            "{{\"event\": \"joined\", \"file\": {}, \"domain\": {}, \"domains\": {}, \"incarnation\": {incarnation}}}",
            json::text(&options.file.to_string_lossy()),
            options.domain,
            pool.domain_count()
        ),
        &format!("joined as domain {} of {}, for the {incarnation}. time", options.domain, pool.domain_count()),
    )?;
    let mut test = SelfTest {
        question: Some(pool.ask_for_coherence().map_err(explained)?),
        answerer: pool.answerer().map_err(explained)?,
    };
    let began = Instant::now();
    let is_over = || options.stay.is_some_and(|stay| began.elapsed() >= stay);
    loop {
        // A file that was made shorter may still have the page of the self-test: its end has gone.
        pool.read(pool.size_bytes() - LINE_BYTES, &mut [0; LINE_BYTES]).map_err(explained)?;
        if let Some(judgement) = test.go_on().map_err(explained)? {
            let word =
                said(judgement, options.is_coherent).map_err(|why| format!("{}: {why}", options.file.display()))?;
            say(
                options.is_json,
                &format!("{{\"event\": \"tested\", \"memory\": \"{word}\"}}"),
                &judgement.to_string(),
            )?;
        }
        if signals.read_signal().map_err(failed)?.is_some() || is_over() {
            break;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    if test.question.is_some() {
        let judgement = Judgement::Unanswered;
        say(options.is_json, "{\"event\": \"tested\", \"memory\": \"unknown\"}", &judgement.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pool::CoherenceTest;
    use pool::emulated::Emulated;

    use super::*;

    const TEST: CoherenceTest = CoherenceTest { at: 0, domain_count: 2 };

    fn self_test<M: Memory + Clone>(memory: &M, me: usize) -> SelfTest<M> {
        let question = Question::ask(memory.clone(), TEST, me, 1 + 1000 * me as u64).unwrap();
        SelfTest { question: Some(question), answerer: Answerer::new(memory.clone(), TEST, me).unwrap() }
    }

    /// Both domains test, in turns, until the second knows.
    fn judged<M: Memory + Clone>(domains: [M; 2]) -> Judgement {
        let [mut first, mut second] = [self_test(&domains[0], 0), self_test(&domains[1], 1)];
        for _ in 0..10_000 {
            first.go_on().unwrap();
            if let Some(judgement) = second.go_on().unwrap() {
                return judgement;
            }
        }
        panic!("no one has answered");
    }

    #[test]
    fn memory_that_is_not_coherent_is_refused_to_who_takes_it_for_coherent() {
        let memory = Emulated::calm(CoherenceTest::bytes(2).next_multiple_of(LINE_BYTES), 2).unwrap();
        let judgement = judged([memory.domain(0), memory.domain(1)]);
        assert_eq!(judgement, Judgement::NotCoherent { other: 0 });
        assert_eq!(said(judgement, false), Ok("not coherent"));
        let why =
            "expected coherent memory, but a change by domain 0 was not seen: choose write-backs and invalidations";
        assert_eq!(said(judgement, true), Err(why.to_owned()));
        assert_eq!(said(Judgement::Coherent, true), Ok("coherent"));
        assert_eq!(said(Judgement::Unanswered, true), Ok("unknown"));
    }
}
