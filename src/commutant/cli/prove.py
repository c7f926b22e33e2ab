"""`commutant prove`: whether a change did what was predicted, and brought nothing new."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options, results
from commutant.cli.remedy import known_changes, scene_in, traffic_in
from commutant.documents import text as text_of
from commutant.support import RunError, UsageError, paused_collector

if TYPE_CHECKING:
    from commutant.remedy import Change, Proof, ProvenRun, Traffic, TransferProof
    from commutant.runs import Run


@click.command(
    "prove",
    short_help="Compare runs after a change with the run before it, and with what was predicted.",
    epilog=options.examples(
        "commutant prove runs/base runs/patched --drop-write cred.non_rcu --again runs/base-2",
        "commutant prove runs/base runs/patched --format commit >> message.txt",
        "commutant prove runs/base runs/patched --format c -o loops && gcc -O2 -pthread -o loop loops/open-mmap.c",
    ),
)
@click.argument("base", type=click.Path(path_type=Path, file_okay=False))
@click.argument("new", type=click.Path(path_type=Path, file_okay=False), nargs=-1, required=True)
@click.option(
    "--again",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUN",
    help="A second run of BASE's system: what differs there is noise.",
)
@options.changes
@options.output_format("text", "json", "commit", "c")
@options.output_file
def command(
    base: Path,
    new: tuple[Path, ...],
    again: Path | None,
    changes: tuple[tuple[str, str], ...],
    format_: str,
    output: Path | None,
) -> int:
    """Says which tests of BASE are freed in NEW, as predicted and besides, and which were predicted but still share.

    Also says which findings have only moved to another name, and what is new above the noise of two runs of BASE.
    Several NEW are compared one after the other. Exit code 1 if something new appeared in one of them. `--format c`
    takes one NEW, and writes a folder: for each pair of calls with freed tests a program that repeats them.
    """
    results.refuse_existing(output)
    if format_ == "c" and (output is None or len(new) > 1):
        raise UsageError("--format c writes a program for each pair of calls: expected one NEW, and -o FOLDER")
    wanted = options.read_changes(changes)
    with paused_collector():
        pieces = _Base(base, again, wanted)
        if format_ == "c" and output is not None:
            return 0 if pieces.write_loops(new[0], output) else 1
        holds = True
        texts: list[str] = []
        for path in new:
            text, held = pieces.against(path, format_)
            texts.append(text)
            holds = holds and held
    results.put(texts, output)
    return 0 if holds else 1


_HOW = ("append", "cores", "cpus", "domains", "fs", "memory", "mount", "names", "security", "seed", "tx")
"""Options of targets that say how something is tested; others say what."""

_SERIES = re.compile(r"\d+\.\d+")


class _Base:
    """BASE as all NEW are held against it."""

    def __init__(self, path: Path, again: Path | None, changes: tuple[Change, ...]) -> None:
        from commutant.remedy import foretell
        from commutant.runs import judged_tests, load_run

        self._run = load_run(path)
        self._changes = changes
        results.say_if_named_otherwise(self._run)
        results.say_if_interrupted(self._run)
        self._verdicts = list(self._run.verdicts())
        self._tests = list(judged_tests(self._run))
        self._foretold: frozenset[str] | None = None
        self._traffic: Traffic | None = None
        if changes:
            scene = scene_in(self._run, self._verdicts)
            self._changes = changes = known_changes(scene, changes)
            self._foretold = foretell(scene, changes).freed
            self._traffic = _traffic_of(self._run)
            if not self._foretold and not self._saves():
                raise UsageError(
                    "these changes are predicted to free no test and to save no transfers; there is nothing to prove"
                )
        self._again = None
        if again is not None:
            other = load_run(again)
            self._refuse_other_corpus(other)
            if _system(other) != _system(self._run):
                raise UsageError(
                    f"{again} is of {_system(other)}, {path} of {_system(self._run)}: "
                    "--again takes a second run of the same system"
                )
            self._again = list(judged_tests(other))

    def against(self, path: Path, format_: str) -> tuple[str, bool]:
        """The text of a proof, and whether it holds."""
        import io

        from rich.console import Console

        from commutant.remedy import commit_message, print_proof, proof_document

        run, proof = self._proof(path)
        calls = {judged.test.id: judged.calls for judged in self._tests}
        transfers = self._transfers(run)
        old, now = _side(self._run), _side(run)
        if format_ == "json":
            return text_of(proof_document(proof, old, now, self._changes, calls, transfers)), proof.holds
        if format_ == "commit":
            by_id = {verdict.test_id: verdict for verdict in self._verdicts}
            return commit_message(proof, old, now, self._changes, calls, by_id), proof.holds
        text = io.StringIO()
        screen = Console(file=text, width=results.FILE_WIDTH, highlight=False, color_system=None)
        print_proof(proof, old, now, self._changes, calls, screen, transfers)
        return text.getvalue(), proof.holds

    def _saves(self) -> bool:
        """Whether the changes are predicted to change transfers."""
        from commutant.remedy import Mix, saving_of

        return self._traffic is not None and bool(saving_of(self._traffic, self._changes, Mix({})).tests)

    def _transfers(self, run: Run) -> TransferProof | None:
        """What came of the transfers, where both runs tell."""
        from commutant.remedy import prove_transfers

        new = _traffic_of(run) if self._traffic is not None else None
        return prove_transfers(self._traffic, new, self._changes) if self._traffic and new else None

    def write_loops(self, path: Path, folder: Path) -> bool:
        """Writes a program per pair of calls with freed tests into a new folder; returns whether the proof holds."""
        from commutant.remedy import loops

        run, proof = self._proof(path)
        by_id = {verdict.test_id: verdict for verdict in self._verdicts}
        made = loops(proof, _side(self._run), _side(run), self._run.tests, by_id)
        if not made.programs:
            why = f"no C form for {', '.join(made.left_out)}" if made.left_out else "no test is freed"
            raise UsageError(f"{path}: {why}; there is nothing to repeat")
        try:
            folder.mkdir()
            for name, text in made.programs.items():
                (folder / name).write_text(text, encoding="ascii")
        except OSError as error:
            raise RunError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error
        console.write_path(folder)
        if made.left_out:
            console.message(f"no freed test that can be repeated: {', '.join(made.left_out)}")
        return proof.holds

    def _proof(self, path: Path) -> tuple[Run, Proof]:
        """NEW and what is to be said of it; raises UsageError if it cannot be compared."""
        from commutant.remedy import prove
        from commutant.runs import judged_tests, load_run

        run = load_run(path)
        self._refuse_other_corpus(run)
        _refuse_other_series(self._run, run)
        _refuse_other_build(self._run, run)
        results.say_if_named_otherwise(run)
        results.say_if_interrupted(run)
        proof = prove(self._tests, list(judged_tests(run)), self._foretold, self._again)
        if not proof.tests:
            raise UsageError(f"{path} and {self._run.path} share no judged test; run the same corpus on both")
        if run.info.repeats != self._run.info.repeats:
            console.message(
                f"{path} has {run.info.repeats} windows per order, {self._run.path} {self._run.info.repeats}"
            )
        if run.info.tests == self._run.info.tests and run.info.seed != self._run.info.seed:
            console.message(
                f"{path} has seed {run.info.seed}, {self._run.path} {self._run.info.seed}: their tests ran in another "
                "order, which makes noise; --again takes a run that shows how much"
            )
        return run, proof

    def _refuse_other_corpus(self, run: Run) -> None:
        if run.info.model != self._run.info.model:
            raise UsageError(
                f"{run.path} is of {run.info.interface}, model {run.info.model}, {self._run.path} of "
                f"{self._run.info.interface}, model {self._run.info.model}: expected runs of one corpus"
            )
        options = [_fixed_options(one) for one in (self._run, run)]
        if options[0] != options[1]:
            raise UsageError(
                f"{run.path} is of the target {run.info.target}, {self._run.path} of {self._run.info.target}: expected "
                "targets that differ in what is changed alone"
            )


def _traffic_of(run: Run) -> Traffic | None:
    """The transfers of a run; None if it does not tell in which order lines were touched."""
    from commutant.remedy import DEFAULT_CORES

    try:
        return traffic_in(run, DEFAULT_CORES)
    except UsageError:
        return None


def _fixed_options(run: Run) -> tuple[str, dict[str, str]]:
    """A run's target, and its options that say how it is tested."""
    from commutant.targets import TARGETS, parse_target

    name = run.info.target.partition(":")[0]
    options = parse_target(run.info.target)[1] if name in TARGETS else {}
    return name, {key: value for key, value in options.items() if key in _HOW or key.startswith("ignore_")}


def _refuse_other_series(base: Run, new: Run) -> None:
    """Raises UsageError for kernels of two series: too much differs for a proof."""
    series = [_SERIES.match(str(run.info.target_description.get("kernel", ""))) for run in (base, new)]
    if series[0] and series[1] and series[0][0] != series[1][0]:
        raise UsageError(
            f"{new.path} is of Linux {series[1].string}, {base.path} of {series[0].string}: expected one kernel with "
            "and without a change; `commutant history` compares kernels"
        )


_BUILT_OF = {"source_sha256": "sources", "config_sha256": "configuration", "compiler": "compiler"}
"""What two kernels must have in common if a patch is to be all that they differ in."""


def _refuse_other_build(base: Run, new: Run) -> None:
    """Raises UsageError for kernels that were built of other sources, otherwise configured or by another compiler; says
    if only one of them is from `commutant kernel build`."""
    builds = [one.info.target_description.get("kernel_build") for one in (base, new)]
    old, now = (one if isinstance(one, dict) else {} for one in builds)
    if old and now:
        others = [words for key, words in _BUILT_OF.items() if old.get(key) != now.get(key)]
        if others:
            raise UsageError(
                f"{new.path} and {base.path} are of kernels that differ in {' and '.join(others)}: expected one kernel "
                "with and without a change; build both again"
            )
    elif old or now:
        other = base if now else new
        console.message(
            f"{other.path} is of no kernel that `commutant kernel build` made: it may differ in more than patches"
        )


def _system(run: Run) -> str:
    """What a run says of the implementation that it ran on."""
    description = run.info.target_description
    parts = [str(description[key]) for key in ("kernel", "kernel_sha256", "file_system") if key in description]
    return " ".join(parts) or run.info.target


def _side(run: Run) -> ProvenRun:
    import shlex

    from commutant.remedy import ProvenRun

    kernel = run.info.target_description.get("kernel")
    system = f"Linux {kernel}{results.patches_of(run)}" if kernel else run.info.target
    return ProvenRun(str(run.path), run.info.target, system, shlex.join(run.info.command))
