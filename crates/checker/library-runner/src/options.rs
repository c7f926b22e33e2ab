//! The command line.

use runner::place::CORE_LIMIT;

/// Which adapter.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The shared object's.
    pub path: String,
    /// Which of several adapters in it, if it has several.
    pub name: Option<String>,
}

/// What to do with an adapter.
#[derive(Debug, PartialEq, Eq)]
pub enum Mode {
    /// List its calls.
    Calls,
    /// Run batches.
    Batches(Options),
}

/// How to run batches.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Processors that the library is shown.
    pub processors: usize,
    /// How many cores have a thread: as many as a test has calls.
    pub workers: usize,
    /// Moves random numbers, and the numbers and texts of members of sorts.
    pub seed: u64,
    /// Whether each thread has memory of its own.
    pub private_memory: bool,
    /// The file that lists what is loaded.
    pub objects: Option<String>,
    /// The file in which windows are counted.
    pub progress: Option<String>,
}

const MOST_PROCESSORS: usize = 1024;
const USAGE: &str = "expected --adapter PATH, --name NAME if it is one of several, with --calls, or with --cores N --workers N --seed N and, if wanted, \
                     --allocator program|per-core, --objects FILE, --progress FILE";

/// Reads the arguments after the program's name: the adapter's place, and what to do with it.
///
/// # Errors
/// One line that says what was expected and what came.
pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<(Place, Mode), String> {
    let (mut path, mut name, mut calls) = (None, None, false);
    let (mut processors, mut workers, mut seed) = (None, None, None);
    let (mut private_memory, mut objects, mut progress) = (false, None, None);
    while let Some(key) = arguments.next() {
        if key == "--calls" {
            calls = true;
            continue;
        }
        let value = arguments.next().ok_or(USAGE)?;
        let number = |most: u64| {
            let number = value.parse::<u64>().ok().filter(|number| *number <= most);
            number.ok_or_else(|| format!("{key} {value}: expected a number up to {most}"))
        };
        match key.as_str() {
            "--adapter" => path = Some(value),
            "--name" => name = Some(value),
            "--cores" => processors = Some(number(MOST_PROCESSORS as u64)?.max(1) as usize),
            "--workers" => workers = Some(number(CORE_LIMIT as u64)?.max(1) as usize),
            "--seed" => seed = Some(number(u64::MAX)?),
            "--allocator" if value == "program" || value == "per-core" => private_memory = value == "per-core",
            "--objects" => objects = Some(value),
            "--progress" => progress = Some(value),
            _ => return Err(format!("{key} {value}: {USAGE}")),
        }
    }
    let place = Place { path: path.ok_or(USAGE)?, name };
    match (calls, processors, workers, seed) {
        (true, ..) => Ok((place, Mode::Calls)),
        (false, Some(processors), Some(workers), Some(seed)) => {
            Ok((place, Mode::Batches(Options { processors, workers, seed, private_memory, objects, progress })))
        }
        _ => Err(USAGE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Place, Mode), String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn batches_need_an_adapter_and_three_numbers() {
        let place = |name: Option<&str>| Place { path: "a.so".to_owned(), name: name.map(str::to_owned) };
        assert_eq!(parsed("--adapter a.so --calls"), Ok((place(None), Mode::Calls)));
        assert_eq!(parsed("--adapter a.so --name one --calls"), Ok((place(Some("one")), Mode::Calls)));
        let options = Options {
            processors: 16,
            workers: 2,
            seed: 7,
            private_memory: true,
            objects: Some("f".to_owned()),
            progress: None,
        };
        let line = "--adapter a.so --cores 16 --workers 2 --seed 7 --allocator per-core --objects f";
        assert_eq!(parsed(line), Ok((place(None), Mode::Batches(options))));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, message) in [
            ("", "expected --adapter"),
            ("--calls", "expected --adapter"),
            ("--adapter", "expected --adapter"),
            ("--adapter a.so --cores 2", "expected --adapter"),
            ("--adapter a.so --cores x", "--cores x: expected a number"),
            ("--adapter a.so --workers 99", "--workers 99: expected a number up to"),
            ("--adapter a.so --allocator my", "--allocator my: expected"),
            ("--adapter a.so --what now", "--what now: expected"),
        ] {
            assert!(parsed(line).unwrap_err().starts_with(message), "{line}");
        }
    }
}
