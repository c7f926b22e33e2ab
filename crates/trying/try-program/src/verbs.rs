//! The verbs: each does its work, prints what came of it, and says the exit code.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::changes::Changes;
use crate::commit::{self, Merging, Outcome, Recovered};
use crate::failure::{Failure, REFUSED};
use crate::filter::Filter;
use crate::options::{self, Format, Options, Then, Verb};
use crate::plan::Output;
use crate::report::{self, Document, put};
use crate::run::{self, Running};
use crate::signals;
use crate::workspace::Workspace;

/// Does what the arguments ask for.
pub(crate) fn main(arguments: Vec<OsString>) -> u8 {
    let wants_json = arguments.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let parsed = options::parse(arguments).and_then(|parsed| signals::watch().map(|()| parsed));
    let outcome = parsed.and_then(|(options, verb)| match verb {
        Verb::Say(text) => {
            put(text);
            Ok(0)
        }
        Verb::Run(command) => run_command(&options, command, None),
        Verb::Explore(directory) => run_command(&options, options::interactive_shell(), directory.as_deref()),
        Verb::Summary(directory) => summary(&options, &directory),
        Verb::Commit(directory) => commit_directory(&options, &directory),
        Verb::Recover(directory) => recover(&options, &directory),
    });
    outcome.unwrap_or_else(|failure| {
        eprintln!("commutant try: {}", failure.line());
        if wants_json {
            let exit_code = failure.exit_code();
            put(&Document { outcome: "failed", exit_code, error: Some(failure.line()), ..Document::default() }.json());
        }
        failure.exit_code()
    })
}

/// Runs a command, in its own workspace or in the given one, and does with its changes what was asked for.
fn run_command(options: &Options, command: Vec<OsString>, explored: Option<&Path>) -> Result<u8, Failure> {
    let between = options.between.iter().map(|path| layer_below(path)).collect::<Result<Vec<_>, _>>()?;
    let running = Running {
        command,
        network: options.network,
        output: if options.format == Format::Json { Output::ToErrors } else { Output::AsIs },
        between,
        keeps_read: options.merging == Merging::Disjoint,
    };
    let given = explored.or(options.workspace.as_deref());
    let mut attempts = 0;
    loop {
        attempts += 1;
        let mut workspace = match (given, explored) {
            (Some(path), Some(_)) => Workspace::existing(path)?,
            (Some(path), None) => Workspace::prepare(path)?,
            (None, _) => Workspace::create_anywhere()?,
        };
        if options.retries > 0 && attempts == 1 && workspace.holds_changes()? {
            return Err(Failure::input(format!(
                "--retry begins again with each attempt, and {} holds changes of earlier runs: commit those first, or take an empty \
                 directory",
                workspace.path.display()
            )));
        }
        workspace.hidden.extend(
            options.hidden.iter().filter(|place| !workspace.hidden.contains(place)).cloned().collect::<Vec<_>>(),
        );
        workspace.command = shown_command(&running.command);
        let ran = run::run(&mut workspace, &running);
        let code = match ran {
            Ok(code) => code,
            Err(failure) => {
                if given.is_none() {
                    workspace.remove()?;
                }
                return Err(failure);
            }
        };
        let end = End { options, code, attempts, is_own: given.is_none() };
        if let Some(code) = end.settle(workspace)? {
            return Ok(code);
        }
    }
}

/// A command has ended.
struct End<'a> {
    options: &'a Options,
    /// The command's exit code.
    code: u8,
    attempts: u32,
    /// Whether the workspace goes when it is not wanted any more.
    is_own: bool,
}

impl End<'_> {
    /// Does with the changes what was asked for; `None` if the command is to run again.
    fn settle(&self, workspace: Workspace) -> Result<Option<u8>, Failure> {
        let tree = commit::tree_of(&workspace)?;
        let looks = commit::looks_of(&workspace)?;
        let changes = commit::changes_of(&workspace, &tree, &looks, &self.options.filter)?;
        if let Some(path) = &self.options.trace {
            let text = report::trace(&looks, &changes);
            fs::write(path, text).map_err(Failure::doing(path.display()))?;
        }
        let then = if self.options.format == Format::Json && self.options.then == Then::Ask {
            Then::Keep
        } else {
            self.options.then
        };
        match then {
            Then::Keep => {
                self.say("kept", self.code, &workspace, Some(&changes));
                if self.options.format == Format::Text && self.is_own {
                    put(&workspace.path.display().to_string());
                }
                Ok(Some(self.code))
            }
            _ if changes.changes.is_empty() => {
                self.say("nothing", self.code, &workspace, Some(&changes));
                self.discard(workspace)?;
                Ok(Some(self.code))
            }
            Then::Commit if self.code != 0 => {
                eprintln!("commutant try: not committed: the command failed with {}", self.code);
                self.say("command_failed", self.code, &workspace, Some(&changes));
                self.discard(workspace)?;
                Ok(Some(self.code))
            }
            Then::Commit => self.commit(workspace, &self.options.filter),
            Then::Ask => {
                report::print_changes(&changes);
                match asked(&changes)? {
                    None => {
                        self.discard(workspace)?;
                        Ok(Some(self.code))
                    }
                    Some(chosen) => {
                        let mut filter = self.options.filter.clone();
                        if let Some(chosen) = chosen {
                            filter.choose(chosen);
                        }
                        self.commit(workspace, &filter)
                    }
                }
            }
        }
    }

    fn commit(&self, workspace: Workspace, filter: &Filter) -> Result<Option<u8>, Failure> {
        let outcome = commit::commit(&workspace, filter, self.options.merging, self.options.showing)?;
        if let Outcome::Refused(..) = outcome
            && self.attempts <= self.options.retries
        {
            eprintln!("commutant try: attempt {} was refused, running the command again", self.attempts);
            if self.is_own {
                workspace.remove()?
            } else {
                workspace.empty()?
            }
            return Ok(None);
        }
        let code = say_outcome(&outcome, &workspace, self.options, Some((self.code, self.attempts)));
        match outcome {
            Outcome::Refused(..) => eprintln!("commutant try: the changes are in {}", workspace.path.display()),
            _ => self.discard(workspace)?,
        }
        Ok(Some(if code == 0 { self.code } else { code }))
    }

    fn discard(&self, workspace: Workspace) -> Result<(), Failure> {
        if self.is_own { workspace.remove() } else { Ok(()) }
    }

    fn say(&self, outcome: &str, exit_code: u8, workspace: &Workspace, changes: Option<&Changes>) {
        if self.options.format == Format::Json {
            let document = Document {
                outcome,
                exit_code,
                directory: Some(&workspace.path),
                command_exit_code: Some(self.code),
                attempts: Some(self.attempts),
                changes,
                ..Document::default()
            };
            put(&document.json());
        }
    }
}

/// Whether to commit, and what: all, or the paths that are left in an editor.
fn asked(changes: &Changes) -> Result<Option<Option<BTreeSet<String>>>, Failure> {
    let mut output = std::io::stdout();
    let _ = write!(output, "\nCommit these changes? [y/N/i] (i: choose in an editor) ").and_then(|()| output.flush());
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(Failure::doing("reading the answer"))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(Some(None)),
        "i" | "I" => chosen_in_editor(changes).map(|chosen| Some(Some(chosen))),
        _ => Ok(None),
    }
}

fn chosen_in_editor(changes: &Changes) -> Result<BTreeSet<String>, Failure> {
    let lines: String = changes
        .changes
        .iter()
        .flat_map(|change| &change.items)
        .map(|(place, label)| format!("{place} ({})\n", label.text()))
        .collect();
    let path = std::env::temp_dir().join(format!("commutant-try-{}", crate::workspace::random_name()));
    let failed = || Failure::doing(path.display());
    let made = fs::File::options().write(true).create_new(true).open(&path);
    made.and_then(|mut file| file.write_all(lines.as_bytes())).map_err(failed())?;
    let editor = std::env::var_os("EDITOR").filter(|editor| !editor.is_empty()).unwrap_or_else(|| "vi".into());
    let line = [editor.as_os_str(), " \"$1\"".as_ref()].join("".as_ref());
    let edited = Command::new("/bin/sh").arg("-c").arg(line).arg("sh").arg(&path).status();
    let left = fs::read_to_string(&path);
    let _ = fs::remove_file(&path);
    if !edited.map_err(Failure::doing(editor.display()))?.success() {
        return Err(Failure::Run(format!("{}: the editor failed, and nothing was committed", editor.display())));
    }
    let left = left.map_err(failed())?;
    Ok(left.lines().filter_map(|line| line.rsplit_once(" (")).map(|(path, _)| path.to_owned()).collect())
}

/// Lists the changes of a workspace.
fn summary(options: &Options, directory: &Path) -> Result<u8, Failure> {
    let workspace = Workspace::existing(directory)?;
    let tree = commit::tree_of(&workspace)?;
    let changes = commit::changes_of(&workspace, &tree, &commit::looks_of(&workspace)?, &options.filter)?;
    let exit_code = if changes.changes.is_empty() { REFUSED } else { 0 };
    if options.format == Format::Json {
        let outcome = if exit_code == 0 { "changes" } else { "nothing" };
        let document = Document {
            outcome,
            exit_code,
            directory: Some(&workspace.path),
            changes: Some(&changes),
            ..Document::default()
        };
        put(&document.json());
    } else if exit_code == 0 {
        report::print_changes(&changes);
    }
    Ok(exit_code)
}

fn commit_directory(options: &Options, directory: &Path) -> Result<u8, Failure> {
    let workspace = Workspace::existing(directory)?;
    let changes =
        commit::changes_of(&workspace, &commit::tree_of(&workspace)?, &commit::looks_of(&workspace)?, &options.filter)?;
    // A commit empties its workspace, and what was left out would be lost.
    if let Some(place) = changes.unwanted.first() {
        return Err(Failure::input(format!(
            "{place} would be left out by -I or -E, and be lost, since a commit empties its workspace: commit all of it, or run the \
             command again with -y and these options"
        )));
    }
    let outcome = commit::commit(&workspace, &options.filter, options.merging, options.showing)?;
    Ok(say_outcome(&outcome, &workspace, options, None))
}

/// Says what became of a commit; the exit code.
fn say_outcome(outcome: &Outcome, workspace: &Workspace, options: &Options, ran: Option<(u8, u32)>) -> u8 {
    let none = Vec::new();
    let (name, code, changes, conflicts) = match outcome {
        Outcome::Nothing => ("nothing", 0, None, &none),
        Outcome::Committed(changes) => ("committed", 0, Some(changes), &none),
        Outcome::Refused(changes, conflicts) => ("refused", REFUSED, Some(changes), conflicts),
    };
    if options.format == Format::Json {
        let document = Document {
            outcome: name,
            exit_code: code,
            directory: Some(&workspace.path),
            command_exit_code: ran.map(|(code, _)| code),
            attempts: ran.map(|(_, attempts)| attempts),
            changes,
            conflicts,
            error: None,
        };
        put(&document.json());
    }
    if code != 0 {
        report::print_conflicts(&workspace.path, conflicts, options.merging);
    } else {
        for place in changes.iter().flat_map(|changes| changes.merged()) {
            eprintln!("commutant try: {place}: merged with what others have changed in it");
        }
    }
    code
}

fn recover(options: &Options, directory: &Path) -> Result<u8, Failure> {
    let workspace = Workspace::existing(directory)?;
    let (outcome, line) = match commit::recover(&workspace)? {
        Recovered::Nothing => ("nothing", "no commit was cut short"),
        Recovered::Finished => ("finished", "the commit is whole now"),
        Recovered::Undone => ("undone", "the commit is undone: nothing was changed, and the changes are kept"),
    };
    match options.format {
        Format::Json => {
            put(&Document { outcome, directory: Some(&workspace.path), ..Document::default() }.json());
        }
        Format::Text => put(&format!("{}: {line}", workspace.path.display())),
    }
    Ok(if outcome == "undone" { REFUSED } else { 0 })
}

/// Another workspace whose changes lie below: its path; no other process may be using it.
fn layer_below(path: &Path) -> Result<PathBuf, Failure> {
    Workspace::existing(path).map(|workspace| workspace.path.clone())
}

/// A command for messages.
fn shown_command(command: &[OsString]) -> String {
    command.last().map(|line| line.to_string_lossy().into_owned()).unwrap_or_default()
}
