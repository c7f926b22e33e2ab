//! What is asked for on the command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

const HELP: &str = "\
pool: memory that domains share without coherence, in a file

  pool create FILE    make a pool
  pool join FILE      be a domain of it, and test whether its memory is coherent
  pool inspect FILE   say what it is, and who is in it

`pool VERB --help` says more. Exit codes: 0 done, 1 it could not be done, 2 the command line is wrong.";

const CREATE_HELP: &str = "\
pool create --size N [--domains N] FILE
Makes FILE a pool whose bytes are all zero, or makes one again that no domain has joined. Only its owner may read and write it.

  --size N       its bytes, or K, M, G: a multiple of 64
  --domains N    domains that can join it, 1 to 256 (default 2)

Examples:
  pool create --size 2M /dev/shm/shared
  pool create --size 1G --domains 16 /dev/dax0.0";

const JOIN_HELP: &str = "\
pool join --domain N [OPTIONS] FILE
Joins a pool as a domain, and stays until ctrl-C. Asks the other domains whether their changes are seen without write-backs and
invalidations, says so once they have answered, and answers them.

  --domain N      the domain's number, from 0
  --coherent      end with an error if the memory is found not to be coherent
  --take-over     the number was left by another host, which has ended
  --for SECONDS   leave after so long
  --json          a line of JSON for each thing that is said

Examples:
  pool join --domain 1 /dev/shm/shared
  pool join --domain 1 --coherent --for 5 /dev/shm/shared";

const INSPECT_HELP: &str = "\
pool inspect [--json] FILE
Says what a pool is, and who has joined it, without joining.

  --json    one JSON object: file, version, size_bytes, first_free, domains, owner, mode, write_back, invalidate, members

Examples:
  pool inspect /dev/shm/shared
  pool inspect --json /dev/shm/shared";

/// A pool that is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CreateOptions {
    pub(crate) file: PathBuf,
    pub(crate) size_bytes: usize,
    pub(crate) domain_count: usize,
}

/// A stay in a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinOptions {
    pub(crate) file: PathBuf,
    pub(crate) domain: usize,
    pub(crate) is_coherent: bool,
    pub(crate) takes_over: bool,
    pub(crate) stay: Option<Duration>,
    pub(crate) is_json: bool,
}

/// A look at a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InspectOptions {
    pub(crate) file: PathBuf,
    pub(crate) is_json: bool,
}

/// What the program is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Say(&'static str),
    Create(CreateOptions),
    Join(JoinOptions),
    Inspect(InspectOptions),
}

/// What the arguments ask for, or why they cannot be.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let arguments: Vec<OsString> = arguments.collect();
    let Some((verb, rest)) = arguments.split_first() else { return Ok(Command::Say(HELP)) };
    let wants_help = rest.iter().take_while(|argument| *argument != "--").any(|a| a == "--help" || a == "-h");
    match verb.to_str() {
        Some("--help" | "-h" | "help") => Ok(Command::Say(HELP)),
        Some("--version") => Ok(Command::Say(concat!("pool ", env!("CARGO_PKG_VERSION")))),
        Some("create") if wants_help => Ok(Command::Say(CREATE_HELP)),
        Some("join") if wants_help => Ok(Command::Say(JOIN_HELP)),
        Some("inspect") if wants_help => Ok(Command::Say(INSPECT_HELP)),
        Some("create") => parse_create(rest).map(Command::Create),
        Some("join") => parse_join(rest).map(Command::Join),
        Some("inspect") => parse_inspect(rest).map(Command::Inspect),
        _ => Err(format!("{}: expected create, join or inspect: see pool --help", verb.display())),
    }
}

/// Arguments of a verb: options by name, and one file.
struct Arguments<'a> {
    verb: &'static str,
    rest: std::slice::Iter<'a, OsString>,
    file: Option<&'a OsStr>,
    only_files: bool,
}

impl<'a> Arguments<'a> {
    fn of(verb: &'static str, arguments: &'a [OsString]) -> Arguments<'a> {
        Arguments { verb, rest: arguments.iter(), file: None, only_files: false }
    }

    /// The next option; files before it are kept.
    fn next_option(&mut self) -> Result<Option<&'a OsStr>, String> {
        for argument in self.rest.by_ref() {
            if argument == "--" && !self.only_files {
                self.only_files = true;
            } else if !self.only_files && argument.as_encoded_bytes().starts_with(b"-") {
                return Ok(Some(argument));
            } else if self.file.replace(argument).is_some() {
                return Err(format!("expected one file, got more: see pool {} --help", self.verb));
            }
        }
        Ok(None)
    }

    /// An option's value as a whole number from `least` to `most`.
    fn number(&mut self, option: &str, least: usize, most: usize) -> Result<usize, String> {
        let value = self.value(option)?;
        let number = value.to_str().and_then(|text| text.parse().ok());
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| format!("{option}: expected a number from {least} to {most}, got {}", value.display()))
    }

    fn value(&mut self, option: &str) -> Result<&'a OsStr, String> {
        let value = self.rest.next().map(OsString::as_os_str);
        value.ok_or_else(|| format!("{option} needs a value: see pool {} --help", self.verb))
    }

    fn unknown(&self, option: &OsStr) -> String {
        format!("{} is no option of {verb}: see pool {verb} --help", option.display(), verb = self.verb)
    }

    fn file(&self) -> Result<PathBuf, String> {
        let file = self.file.filter(|file| !file.is_empty());
        file.map(PathBuf::from).ok_or_else(|| format!("expected a file: see pool {} --help", self.verb))
    }
}

/// Domains of a pool, at most.
const MOST_DOMAINS: usize = 256;

fn parse_create(arguments: &[OsString]) -> Result<CreateOptions, String> {
    let mut arguments = Arguments::of("create", arguments);
    let (mut size_bytes, mut domain_count) = (None, 2);
    while let Some(option) = arguments.next_option()? {
        match option.to_str() {
            Some("--size") => size_bytes = Some(parse_size(arguments.value("--size")?)?),
            Some("--domains") => domain_count = arguments.number("--domains", 1, MOST_DOMAINS)?,
            _ => return Err(arguments.unknown(option)),
        }
    }
    let size_bytes = size_bytes.ok_or("expected --size N, such as --size 2M: see pool create --help")?;
    Ok(CreateOptions { file: arguments.file()?, size_bytes, domain_count })
}

fn parse_join(arguments: &[OsString]) -> Result<JoinOptions, String> {
    let mut arguments = Arguments::of("join", arguments);
    let (mut domain, mut stay) = (None, None);
    let (mut is_coherent, mut takes_over, mut is_json) = (false, false, false);
    while let Some(option) = arguments.next_option()? {
        match option.to_str() {
            Some("--domain") => domain = Some(arguments.number("--domain", 0, MOST_DOMAINS - 1)?),
            Some("--for") => stay = Some(parse_seconds(arguments.value("--for")?)?),
            Some("--coherent") => is_coherent = true,
            Some("--take-over") => takes_over = true,
            Some("--json") => is_json = true,
            _ => return Err(arguments.unknown(option)),
        }
    }
    let domain = domain.ok_or("expected --domain N, such as --domain 0: see pool join --help")?;
    Ok(JoinOptions { file: arguments.file()?, domain, is_coherent, takes_over, stay, is_json })
}

fn parse_inspect(arguments: &[OsString]) -> Result<InspectOptions, String> {
    let mut arguments = Arguments::of("inspect", arguments);
    let mut is_json = false;
    while let Some(option) = arguments.next_option()? {
        match option.to_str() {
            Some("--json") => is_json = true,
            _ => return Err(arguments.unknown(option)),
        }
    }
    Ok(InspectOptions { file: arguments.file()?, is_json })
}

/// A number of bytes, with K, M or G for powers of 1,024.
fn parse_size(text: &OsStr) -> Result<usize, String> {
    let wrong = || format!("--size: expected bytes, or a number such as 2M, got {}", text.display());
    let digits = text.to_str().ok_or_else(wrong)?;
    let (digits, unit) = match digits.char_indices().next_back() {
        Some((end, 'K' | 'k')) => (&digits[..end], 1 << 10),
        Some((end, 'M' | 'm')) => (&digits[..end], 1 << 20),
        Some((end, 'G' | 'g')) => (&digits[..end], 1 << 30),
        _ => (digits, 1),
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_number { digits.parse::<usize>().ok() } else { None };
    number.and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)
}

fn parse_seconds(text: &OsStr) -> Result<Duration, String> {
    let seconds = text.to_str().and_then(|text| text.parse::<f64>().ok());
    let stay = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    stay.ok_or_else(|| format!("--for: expected seconds such as 5 or 0.5, got {}", text.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_may_come_before_and_after_the_file() {
        let created = CreateOptions { file: "a".into(), size_bytes: 2 << 20, domain_count: 3 };
        assert_eq!(parsed("create --size 2M a --domains 3"), Ok(Command::Create(created)));
        let joined = JoinOptions {
            file: "-a".into(),
            domain: 255,
            is_coherent: true,
            takes_over: true,
            stay: Some(Duration::from_millis(1500)),
            is_json: true,
        };
        let line = "join --for 1.5 --coherent --take-over --json --domain 255 -- -a";
        assert_eq!(parsed(line), Ok(Command::Join(joined)));
        assert_eq!(parsed("inspect a"), Ok(Command::Inspect(InspectOptions { file: "a".into(), is_json: false })));
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let cases = [
            ("make", "make: expected create, join or inspect: see pool --help"),
            ("create a", "expected --size N, such as --size 2M: see pool create --help"),
            ("create --size", "--size needs a value: see pool create --help"),
            ("create --size 1.5M a", "--size: expected bytes, or a number such as 2M, got 1.5M"),
            ("create --size 99999999999G a", "--size: expected bytes, or a number such as 2M, got 99999999999G"),
            ("create --size M a", "--size: expected bytes, or a number such as 2M, got M"),
            ("create --size 1M", "expected a file: see pool create --help"),
            ("create --size 1M a b", "expected one file, got more: see pool create --help"),
            ("create --size 1M --domains 257 a", "--domains: expected a number from 1 to 256, got 257"),
            ("create --size 1M --domain 1 a", "--domain is no option of create: see pool create --help"),
            ("join a", "expected --domain N, such as --domain 0: see pool join --help"),
            ("join --domain -1 a", "--domain: expected a number from 0 to 255, got -1"),
            ("join --domain 256 a", "--domain: expected a number from 0 to 255, got 256"),
            ("join --domain 0 --for long a", "--for: expected seconds such as 5 or 0.5, got long"),
            ("join --domain 0 --for -1 a", "--for: expected seconds such as 5 or 0.5, got -1"),
            ("inspect --all a", "--all is no option of inspect: see pool inspect --help"),
        ];
        for (line, expected) in cases {
            assert_eq!(parsed(line), Err(expected.to_owned()), "{line}");
        }
    }

    #[test]
    fn help_has_examples() {
        for (line, text) in
            [("--help", HELP), ("create -h", CREATE_HELP), ("join --help", JOIN_HELP), ("inspect --help", INSPECT_HELP)]
        {
            assert_eq!(parsed(line), Ok(Command::Say(text)));
        }
        assert!([CREATE_HELP, JOIN_HELP, INSPECT_HELP].iter().all(|text| text.contains("Examples:")));
    }
}
