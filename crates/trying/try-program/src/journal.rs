//! The journal: the steps of a commit that is decided, one a line, in a file that is there whole or not at all.
//!
//! ```text
//! DIR/staged         what is staged beside its place, before any of it is made
//! DIR/journal        the commit is decided: who comes next makes all steps
//! DIR/journal.undo   it could not be made whole: who comes next undoes all steps
//! DIR/journal.done   it is made: what is left over goes
//! ```

use std::fs;
use std::io;

use crate::attributes::Attributes;
use crate::escape;
use crate::extended::Extended;
use crate::failure::Failure;
use crate::place::Place;
use crate::step::{Does, Step, Where};
use crate::workspace::Workspace;

const FIRST_LINE: &str = "commutant-try journal 1";
const STAGED_FIRST_LINE: &str = "commutant-try staged 1";

/// How far a commit has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Decided,
    Undoing,
    Done,
}

impl Phase {
    pub(crate) const ALL: [Phase; 3] = [Phase::Decided, Phase::Undoing, Phase::Done];

    pub(crate) fn file(self) -> &'static str {
        match self {
            Phase::Decided => "journal",
            Phase::Undoing => "journal.undo",
            Phase::Done => "journal.done",
        }
    }
}

/// Writes a file that ends with its own hash.
fn write(workspace: &Workspace, file: &str, mut text: String) -> Result<(), Failure> {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    text.push_str(&format!("end {hash}\n"));
    workspace.replace(file, text.as_bytes())
}

/// Reads such a file; `None` if it is not there.
fn read(workspace: &Workspace, file: &str, first: &str) -> Result<Option<Vec<String>>, Failure> {
    let path = workspace.path.join(file);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::doing(path.display())(error)),
    };
    let wrong =
        || Failure::input(format!("{}: it is not as it was written, and nothing is done by it", path.display()));
    let (body, end) = text.strip_suffix('\n').and_then(|text| text.rsplit_once('\n')).ok_or_else(wrong)?;
    let body = format!("{body}\n");
    if end != format!("end {}", blake3::hash(body.as_bytes()).to_hex()) {
        return Err(wrong());
    }
    let mut lines = body.lines();
    if lines.next() != Some(first) {
        return Err(Failure::input(format!("{}: expected a file that begins with `{first}`", path.display())));
    }
    Ok(Some(lines.map(str::to_owned).collect()))
}

/// Notes what will be staged beside its place.
pub(crate) fn write_staged(workspace: &Workspace, beside: &[(Place, String)]) -> Result<(), Failure> {
    let mut text = format!("{STAGED_FIRST_LINE}\n");
    for (place, name) in beside {
        text.push_str(&format!("{} {name}\n", escape::word(&place.absolute())));
    }
    write(workspace, "staged", text)
}

/// What was noted so.
pub(crate) fn read_staged(workspace: &Workspace) -> Result<Vec<(Place, String)>, Failure> {
    let lines = read(workspace, "staged", STAGED_FIRST_LINE)?.unwrap_or_default();
    let pair = |line: &String| {
        let (place, name) = line.split_once(' ')?;
        let name = own_name(name)?;
        Some((Place::of_bytes(&escape::bytes_of(place)?)?, name))
    };
    lines
        .iter()
        .map(|line| {
            pair(line)
                .ok_or_else(|| Failure::input(format!("{}/staged: no line of it: `{line}`", workspace.path.display())))
        })
        .collect()
}

/// A name on the stage; others are of no step.
fn own_name(name: &str) -> Option<String> {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let is_beside = name
        .strip_prefix(".commutant-try-")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'));
    (is_number || is_beside).then(|| name.to_owned())
}

/// Writes the steps: from now on the commit is decided.
pub(crate) fn decide(workspace: &Workspace, steps: &[Step]) -> Result<(), Failure> {
    let mut text = format!("{FIRST_LINE}\n");
    for step in steps {
        text.push_str(&line(step));
        text.push('\n');
    }
    write(workspace, Phase::Decided.file(), text)
}

/// The steps of a commit that was decided, and how far it has come.
pub(crate) fn pending(workspace: &Workspace) -> Result<Option<(Phase, Vec<Step>)>, Failure> {
    for phase in Phase::ALL {
        if let Some(lines) = read(workspace, phase.file(), FIRST_LINE)? {
            let wrong = |line: &String| {
                Failure::input(format!("{}: no step: `{line}`", workspace.path.join(phase.file()).display()))
            };
            let steps = lines.iter().map(|line| step_of(line).ok_or_else(|| wrong(line))).collect::<Result<_, _>>()?;
            return Ok(Some((phase, steps)));
        }
    }
    Ok(None)
}

/// Says that a commit has come to another phase.
pub(crate) fn go_on(workspace: &Workspace, from: Phase, to: Phase) -> Result<(), Failure> {
    let path = |phase: Phase| workspace.path.join(phase.file());
    fs::rename(path(from), path(to)).map_err(Failure::doing(path(to).display()))?;
    workspace.sync()
}

/// Forgets a commit.
pub(crate) fn forget(workspace: &Workspace) -> Result<(), Failure> {
    for file in Phase::ALL.map(Phase::file).into_iter().chain(["staged"]) {
        match fs::remove_file(workspace.path.join(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::doing(workspace.path.join(file).display())(error));
            }
            _ => {}
        }
    }
    workspace.sync()
}

fn line(step: &Step) -> String {
    let at = if step.at == Where::Workspace { "workspace" } else { "beside" };
    let does = match &step.does {
        Does::Create { new } => format!("create {}", new.words()),
        Does::Replace { new, old } => format!("replace {} {}", new.words(), old.words()),
        Does::Remove { old } => format!("remove {}", old.words()),
        Does::Attributes { new, old } => format!(
            "attributes {} {} {} {}",
            new.0.words(),
            extended_words(&new.1),
            old.0.words(),
            extended_words(&old.1)
        ),
    };
    format!("{} {at} {} {does}", escape::word(&step.place.absolute()), step.name)
}

fn extended_words(extended: &Extended) -> String {
    let mut words = vec![extended.len().to_string()];
    words.extend(extended.iter().flat_map(|(name, value)| [escape::word(name), escape::word(value)]));
    words.join(" ")
}

fn extended_of<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Extended> {
    let count: usize = words.next()?.parse().ok()?;
    (0..count).map(|_| Some((escape::bytes_of(words.next()?)?, escape::bytes_of(words.next()?)?))).collect()
}

fn step_of(line: &str) -> Option<Step> {
    let mut words = line.split(' ');
    let place = Place::of_bytes(&escape::bytes_of(words.next()?)?).filter(|place| !place.is_root())?;
    let at = match words.next()? {
        "workspace" => Where::Workspace,
        "beside" => Where::Beside,
        _ => return None,
    };
    let name = own_name(words.next()?)?;
    let does = match words.next()? {
        "create" => Does::Create { new: Attributes::of_words(&mut words)? },
        "replace" => Does::Replace { new: Attributes::of_words(&mut words)?, old: Attributes::of_words(&mut words)? },
        "remove" => Does::Remove { old: Attributes::of_words(&mut words)? },
        "attributes" => {
            let new = (Attributes::of_words(&mut words)?, extended_of(&mut words)?);
            Does::Attributes { new, old: (Attributes::of_words(&mut words)?, extended_of(&mut words)?) }
        }
        _ => return None,
    };
    words.next().is_none().then_some(Step { place, at, name, does })
}
