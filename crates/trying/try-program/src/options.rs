//! What is asked for on the command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::commit::{Merging, Showing};
use crate::failure::Failure;
use crate::filter::Filter;
use crate::place::Place;
use crate::plan::Network;

/// What becomes of the changes of a command that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Ask,
    Keep,
    Commit,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Options of all verbs.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) then: Then,
    pub(crate) network: Network,
    pub(crate) format: Format,
    pub(crate) merging: Merging,
    pub(crate) showing: Showing,
    pub(crate) retries: u32,
    pub(crate) filter: Filter,
    pub(crate) hidden: Vec<Place>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) between: Vec<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) enum Verb {
    Say(&'static str),
    /// The command, as it is given to the system.
    Run(Vec<OsString>),
    Explore(Option<PathBuf>),
    Summary(PathBuf),
    Commit(PathBuf),
    Recover(PathBuf),
}

const VERSION: &str = concat!("commutant try ", env!("CARGO_PKG_VERSION"));

/// What the arguments ask for; an error says what was expected, what came, and what to do.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<(Options, Verb), Failure> {
    let mut options = Options {
        then: Then::Ask,
        network: Network::Shared,
        format: Format::Text,
        merging: Merging::None,
        showing: Showing::ByPath,
        retries: 0,
        filter: Filter::default(),
        hidden: Vec::new(),
        workspace: None,
        between: Vec::new(),
        trace: None,
    };
    let mut arguments = arguments.into_iter();
    let mut words: Vec<OsString> = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            words.extend(arguments.by_ref());
            let command = command_of(words)?;
            return Ok((checked(options)?, Verb::Run(command)));
        }
        if !argument.as_bytes().starts_with(b"-") || argument.len() < 2 {
            words.push(argument);
            break;
        }
        match argument.to_str() {
            Some("-h" | "--help") => return Ok((options, Verb::Say(crate::help::HELP))),
            Some("-v" | "--version") => return Ok((options, Verb::Say(VERSION))),
            Some(long) if long.starts_with("--") => long_option(&mut options, long, &mut arguments)?,
            Some(short) => short_options(&mut options, short, &mut arguments)?,
            None => return Err(unknown(&argument)),
        }
    }
    let Some(first) = words.first().and_then(|word| word.to_str()) else {
        if words.is_empty() {
            return Ok((options, Verb::Say(crate::help::HELP)));
        }
        words.extend(arguments);
        return Ok((checked(options)?, Verb::Run(command_of(words)?)));
    };
    let verb = first.to_owned();
    if matches!(verb.as_str(), "summary" | "explore" | "commit" | "recover") {
        let mut directories = Vec::new();
        while let Some(argument) = arguments.next() {
            match argument.to_str() {
                Some("-h" | "--help") => return Ok((options, Verb::Say(crate::help::HELP))),
                Some(long) if long.starts_with("--") => long_option(&mut options, long, &mut arguments)?,
                Some(short) if short.starts_with('-') && short.len() > 1 => {
                    short_options(&mut options, short, &mut arguments)?;
                }
                _ => directories.push(PathBuf::from(argument)),
            }
        }
        return Ok((checked(options)?, verb_of(&verb, directories)?));
    }
    words.extend(arguments);
    Ok((checked(options)?, Verb::Run(command_of(words)?)))
}

fn verb_of(verb: &str, mut directories: Vec<PathBuf>) -> Result<Verb, Failure> {
    if directories.len() > 1 || (directories.is_empty() && verb != "explore") {
        return Err(Failure::input(format!(
            "commutant try {verb}: expected one directory, got {}: see commutant try --help",
            directories.len()
        )));
    }
    let directory = directories.pop();
    Ok(match (verb, directory) {
        ("summary", Some(directory)) => Verb::Summary(directory),
        ("commit", Some(directory)) => Verb::Commit(directory),
        ("recover", Some(directory)) => Verb::Recover(directory),
        (_, directory) => Verb::Explore(directory),
    })
}

fn unknown(option: &OsStr) -> Failure {
    Failure::input(format!("{} is no option: see commutant try --help", option.display()))
}

fn value(option: &str, arguments: &mut impl Iterator<Item = OsString>) -> Result<OsString, Failure> {
    arguments.next().ok_or_else(|| Failure::input(format!("{option} needs a value: see commutant try --help")))
}

fn text(option: &str, value: OsString) -> Result<String, Failure> {
    value.into_string().map_err(|value| Failure::input(format!("{option} {}: expected text in UTF-8", value.display())))
}

fn long_option(
    options: &mut Options,
    option: &str,
    arguments: &mut impl Iterator<Item = OsString>,
) -> Result<(), Failure> {
    let (name, given) = match option.split_once('=') {
        Some((name, given)) => (name, Some(OsString::from(given))),
        None => (option, None),
    };
    let mut value = |name: &str| given.clone().map_or_else(|| value(name, arguments), Ok);
    match name {
        "--json" => options.format = Format::Json,
        "--merge" => options.merging = Merging::Disjoint,
        "--live" => options.showing = Showing::AtOnce,
        "--format" => {
            options.format = match text(name, value(name)?)?.as_str() {
                "json" => Format::Json,
                "text" => Format::Text,
                other => return Err(Failure::input(format!("--format {other}: expected text or json"))),
            };
        }
        "--retry" => {
            let count = text(name, value(name)?)?;
            options.retries = count
                .parse()
                .map_err(|_| Failure::input(format!("--retry {count}: expected how often, a whole number")))?;
        }
        _ => return Err(unknown(OsStr::new(option))),
    }
    Ok(())
}

fn short_options(
    options: &mut Options,
    letters: &str,
    arguments: &mut impl Iterator<Item = OsString>,
) -> Result<(), Failure> {
    for (position, letter) in letters.char_indices().skip(1) {
        match letter {
            'n' => options.then = Then::Keep,
            'y' => options.then = Then::Commit,
            'x' => options.network = Network::None,
            'E' | 'I' | 'i' | 'N' | 'L' | 't' | 'U' => {
                let rest = &letters[position + 1..];
                let option = format!("-{letter}");
                let value = if rest.is_empty() { value(&option, arguments)? } else { rest.into() };
                return with_value(options, letter, value);
            }
            _ => return Err(unknown(OsStr::new(letters))),
        }
    }
    Ok(())
}

fn with_value(options: &mut Options, letter: char, value: OsString) -> Result<(), Failure> {
    match letter {
        'E' => options.filter.exclude(&text("-E", value)?)?,
        'I' => options.filter.include(&text("-I", value)?)?,
        'i' => options.hidden.push(hidden(Path::new(&value))?),
        'N' => {
            options.workspace = Some(value.into());
            if options.then == Then::Ask {
                options.then = Then::Keep;
            }
        }
        'L' => {
            let paths = value.as_bytes().split(|byte| *byte == b':').filter(|path| !path.is_empty());
            options.between.extend(paths.map(|path| PathBuf::from(OsString::from_vec(path.to_vec()))));
            options.then = Then::Keep;
        }
        't' => options.trace = Some(value.into()),
        // Mounts below others are part of the recorded view: no helper merges them.
        _ => {}
    }
    Ok(())
}

/// A path to hide: the directory on the way to it is that which it truly is.
fn hidden(path: &Path) -> Result<Place, Failure> {
    let shown = path.display();
    let absolute = std::path::absolute(path).map_err(Failure::doing(&shown))?;
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(Failure::input(format!("-i {shown}: expected a path that can be hidden")));
    };
    let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
    Place::of_path(&parent.join(name))
        .ok_or_else(|| Failure::input(format!("-i {shown}: expected a path without `..`")))
}

fn checked(options: Options) -> Result<Options, Failure> {
    if options.retries > 0 && options.then != Then::Commit {
        return Err(Failure::input("--retry runs the command again when its commit is refused: it needs -y"));
    }
    Ok(options)
}

/// The shell that runs a command: that of `TRY_SHELL`, the user's, or the system's.
fn shell() -> OsString {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("TRY_SHELL").or_else(|| set("SHELL")).unwrap_or_else(|| "/bin/sh".into())
}

/// A shell that the user may work in.
pub(crate) fn interactive_shell() -> Vec<OsString> {
    vec![shell()]
}

/// One word is a line for the shell; several are a program and its arguments, each of which stays as it is.
fn command_of(words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let line = match words.as_slice() {
        [] => return Err(Failure::input("expected a command: see commutant try --help")),
        [line] => line.clone(),
        words => OsString::from_vec(words.iter().map(|word| quoted(word.as_bytes())).collect::<Vec<_>>().join(&b' ')),
    };
    Ok(vec![shell(), "-c".into(), line])
}

/// A word that the shell takes as it is.
fn quoted(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let mut quoted = b"'".to_vec();
    for byte in word {
        if *byte == b'\'' { quoted.extend(b"'\\''") } else { quoted.push(*byte) }
    }
    quoted.push(b'\'');
    quoted
}
