"""What `commutant try --json` prints: declared here, written by the program behind the verb (crate `try-program`)."""

from __future__ import annotations

from enum import StrEnum

from commutant.documents import Document, Part


class TriedOutcome(StrEnum):
    """What became of the changes."""

    COMMITTED = "committed"
    """They are made, all of them."""
    REFUSED = "refused"
    """Nothing was changed: `conflicts` says why. They are still in `directory`."""
    KEPT = "kept"
    """They are in `directory`, to be looked at and committed."""
    NOTHING = "nothing"
    """There are none."""
    COMMAND_FAILED = "command_failed"
    """The command failed, and with -y nothing of it is kept."""
    CHANGES = "changes"
    """Of `summary`: there are some."""
    FINISHED = "finished"
    """Of `recover`: a commit that was cut short is whole now."""
    UNDONE = "undone"
    """Of `recover`: a commit that was cut short has left no trace; its changes are still in `directory`."""
    FAILED = "failed"
    """It could not be done: `error` says why."""


class TriedChange(Part, frozen=True):
    """What becomes of a path: added, modified, deleted, created dir, replaced with dir, changed attributes."""

    path: str
    change: str


class TriedConflict(Part, frozen=True):
    """Something that the command has seen, and that is not so any more.

    The three versions: as it was read, as it is now, and what the command would write, with the file that holds that.
    """

    path: str
    question: str
    read_then: str
    there_now: str
    to_be_written: str | None = None
    written_file: str | None = None
    changed_at: str | None = None
    owner: int | None = None


class TryDocument(Document, frozen=True):
    """What became of a run, of a commit or of a recovery, or which changes a workspace holds."""

    outcome: TriedOutcome
    exit_code: int
    directory: str | None = None
    command_exit_code: int | None = None
    attempts: int | None = None
    changes: tuple[TriedChange, ...] = ()
    left_out: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    conflicts: tuple[TriedConflict, ...] = ()
    error: str | None = None
