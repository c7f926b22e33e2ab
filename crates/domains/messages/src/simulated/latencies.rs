//! How long steps take, from a file.
//!
//! A file has a line `name = nanoseconds` for each; what follows a `#` is a comment. All names must be there, so that a
//! figure can be read off its file.

use std::fmt;

/// Nanoseconds of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latencies {
    /// A message is made and sent, but for its lines.
    pub send: u64,
    /// Each line of it is written, and written back.
    pub send_line: u64,
    /// A message is received, but for its lines.
    pub receive: u64,
    /// Each line of it is dropped from the cache and read.
    pub receive_line: u64,
    /// A ring is looked at, and empty.
    pub poll: u64,
    /// A program enters a call.
    pub call: u64,
    /// An operation on an object of the own domain, or a look into what is kept.
    pub own: u64,
    /// A request is served, apart from receiving and answering it.
    pub served: u64,
    /// A line of the pool is dropped from the cache and read.
    pub pool_read_line: u64,
    /// A line of the pool is written, and written back.
    pub pool_write_line: u64,
    /// What was written back has arrived.
    pub drain: u64,
    /// The domain changes between its program and its server, where both share one core.
    pub switch: u64,
}

/// What is wrong with a file of latencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyError(String);

impl fmt::Display for LatencyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for LatencyError {}

/// Machines whose latencies come with this crate: name, and the file.
pub const KNOWN_MACHINES: [(&str, &str); 4] = [
    ("x86", include_str!("../../latencies/x86.txt")),
    ("cxl", include_str!("../../latencies/cxl.txt")),
    ("scc", include_str!("../../latencies/scc.txt")),
    ("hare", include_str!("../../latencies/hare.txt")),
];

/// Longer steps would let clocks run over.
const LONGEST_NS: u64 = 1_000_000_000;

impl Latencies {
    /// Nothing takes time: for tests of what happens, not when.
    pub const NONE: Latencies = Latencies {
        send: 0,
        send_line: 0,
        receive: 0,
        receive_line: 0,
        poll: 0,
        call: 0,
        own: 0,
        served: 0,
        pool_read_line: 0,
        pool_write_line: 0,
        drain: 0,
        switch: 0,
    };

    fn fields(&mut self) -> [(&'static str, &mut u64); 12] {
        [
            ("send", &mut self.send),
            ("send_line", &mut self.send_line),
            ("receive", &mut self.receive),
            ("receive_line", &mut self.receive_line),
            ("poll", &mut self.poll),
            ("call", &mut self.call),
            ("own", &mut self.own),
            ("served", &mut self.served),
            ("pool_read_line", &mut self.pool_read_line),
            ("pool_write_line", &mut self.pool_write_line),
            ("drain", &mut self.drain),
            ("switch", &mut self.switch),
        ]
    }

    /// Those of a machine whose file comes with this crate.
    ///
    /// # Errors
    /// One line that names those there are.
    pub fn of_machine(name: &str) -> Result<Latencies, LatencyError> {
        match KNOWN_MACHINES.iter().find(|(known, _)| *known == name) {
            Some((_, file)) => Latencies::parse(file),
            None => {
                let known: Vec<&str> = KNOWN_MACHINES.iter().map(|(name, _)| *name).collect();
                Err(LatencyError(format!("machine {name}: expected one of {}", known.join(", "))))
            }
        }
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// One line: which line of the file, what was expected, what came.
    pub fn parse(text: &str) -> Result<Latencies, LatencyError> {
        let mut latencies = Latencies::NONE;
        let mut seen = [false; 12];
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |what: String| LatencyError(format!("line {}: {what}", index + 1));
            let (name, value) =
                line.split_once('=').ok_or_else(|| wrong(format!("expected NAME = NANOSECONDS, got {line:?}")))?;
            let (name, value) = (name.trim(), value.trim());
            let nanoseconds = value.parse().ok().filter(|nanoseconds| *nanoseconds <= LONGEST_NS);
            let nanoseconds = nanoseconds
                .ok_or_else(|| wrong(format!("{name}: expected nanoseconds from 0 to {LONGEST_NS}, got {value:?}")))?;
            let fields = latencies.fields();
            let place = fields.iter().position(|(known, _)| *known == name);
            let place = place.ok_or_else(|| {
                let known: Vec<&str> = Latencies::NONE.clone().fields().iter().map(|(name, _)| *name).collect();
                wrong(format!("{name}: expected one of {}", known.join(", ")))
            })?;
            if std::mem::replace(&mut seen[place], true) {
                return Err(wrong(format!("{name} is there twice: keep one")));
            }
            *fields[place].1 = nanoseconds;
        }
        match seen.iter().position(|seen| !seen) {
            None => Ok(latencies),
            Some(missing) => {
                let name = latencies.fields()[missing].0;
                Err(LatencyError(format!("{name} is missing: add a line {name} = NANOSECONDS")))
            }
        }
    }
}
