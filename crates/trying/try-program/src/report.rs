//! What is said about changes and conflicts: lines for people, one document of JSON for programs.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::changes::Changes;
use crate::check::Conflict;
use crate::commit::Merging;
use crate::looks::Looks;
use crate::place::Place;
use crate::question::{Answer, Question};
use crate::time;

/// The version of the document.
const SCHEMA_VERSION: u32 = 1;

/// What a document is about.
#[derive(Debug, Default)]
pub(crate) struct Document<'a> {
    pub(crate) outcome: &'a str,
    pub(crate) exit_code: u8,
    pub(crate) directory: Option<&'a Path>,
    /// Of the command that ran.
    pub(crate) command_exit_code: Option<u8>,
    pub(crate) attempts: Option<u32>,
    pub(crate) changes: Option<&'a Changes>,
    pub(crate) conflicts: &'a [Conflict],
    /// Why it could not be done.
    pub(crate) error: Option<&'a str>,
}

impl Document<'_> {
    /// As one line of JSON.
    pub(crate) fn json(&self) -> String {
        let changes: Vec<Value> = self
            .changes
            .iter()
            .flat_map(|changes| &changes.changes)
            .flat_map(|change| &change.items)
            .map(|(place, label)| json!({"path": place.to_string(), "change": label.text()}))
            .collect();
        let left_out: Vec<String> =
            self.changes.iter().flat_map(|changes| &changes.left_out).map(Place::to_string).collect();
        json!({
            "schema_version": SCHEMA_VERSION,
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "directory": self.directory.map(|path| path.display().to_string()),
            "command_exit_code": self.command_exit_code,
            "attempts": self.attempts,
            "changes": changes,
            "left_out": left_out,
            "merged": self.changes.iter().flat_map(|changes| changes.merged()).map(Place::to_string).collect::<Vec<_>>(),
            "conflicts": self.conflicts.iter().map(|conflict| self.conflict(conflict)).collect::<Vec<_>>(),
            "error": self.error,
        })
        .to_string()
    }

    fn conflict(&self, conflict: &Conflict) -> Value {
        let layer = self.directory.filter(|_| conflict.write.is_some());
        json!({
            "path": conflict.place.to_string(),
            "question": conflict.question,
            "read_then": conflict.then,
            "there_now": conflict.now,
            "to_be_written": conflict.write.map(|label| label.text()),
            "written_file": layer.map(|path| format!("{}/upper{}", path.display(), conflict.place)),
            "changed_at": conflict.changed.map(time::shown),
            "owner": conflict.owner,
        })
    }
}

/// Prints a line; who does not listen any more has heard enough.
pub(crate) fn put(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The changes, a line each, below a line that says so.
pub(crate) fn print_changes(changes: &Changes) {
    put("\nChanges detected in the following files:\n");
    for (place, label) in changes.changes.iter().flat_map(|change| &change.items) {
        put(&format!("{place} ({})", label.text()));
    }
    for place in &changes.left_out {
        put(&format!("{place} (socket, not committed)"));
    }
}

/// Why a commit was refused.
pub(crate) fn print_conflicts(directory: &Path, conflicts: &[Conflict], merging: Merging) {
    eprintln!("commutant try: not committed: what the command has seen is not so any more; nothing was changed");
    for conflict in conflicts {
        let by = match (conflict.changed, conflict.owner) {
            (Some(changed), Some(owner)) => format!(", changed at {}, of user {owner}", time::shown(changed)),
            _ => String::new(),
        };
        eprintln!("{}: {}{by}", conflict.place, conflict.question);
        eprintln!("  read then:     {}", conflict.then);
        eprintln!("  there now:     {}", conflict.now);
        if let Some(label) = conflict.write {
            eprintln!("  to be written: {}, see {}/upper{}", label.text(), directory.display(), conflict.place);
        }
    }
    let hint = match merging {
        Merging::None => "; with --merge it keeps what others changed of other names and bytes",
        Merging::Disjoint => "",
    };
    eprintln!("commutant try: run the command again{hint}");
}

/// Which paths a run has read, and which it has written, a line each.
pub(crate) fn trace(looks: &Looks, changes: &Changes) -> Vec<u8> {
    let is_read = |looks: &[(Question, Answer)]| {
        looks.iter().any(|(question, answer)| *question != Question::Name && !matches!(answer, Answer::Absent))
    };
    let mut text = b"#reads\n".to_vec();
    for (place, _) in looks.places().filter(|(_, looks)| is_read(looks)) {
        text.extend([place.to_string().as_bytes(), b"\n"].concat());
    }
    text.extend(b"#writes\n");
    for (place, _) in changes.changes.iter().flat_map(|change| &change.items) {
        text.extend([place.to_string().as_bytes(), b"\n"].concat());
    }
    text
}
