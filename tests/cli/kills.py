"""Kills at random moments: of the tool, one of its workers, an emulator, at any verb.

`python -m tests.cli.kills COUNT SEED MINUTES` makes that many, or as many as the minutes allow, and prints what came of
them; equal seeds choose equal verbs, victims and moments. After each kill nothing may be left: no process, no temporary
file, nothing half-written next to a run; what stands in a run's directory can be read, and the run goes on to its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_MARK = "COMMUTANT_KILLED_ROUND"
_END_SECONDS = 240.0
_GONE_SECONDS = 20.0
_SMALL = ("names", "--calls", "open,link")

VERBS: dict[str, tuple[str, ...]] = {
    "analyze": ("analyze", "names", "--calls", "open,link,rename", "--jobs", "2", "--no-cache"),
    "generate": (
        "generate",
        "posix18",
        "--calls",
        "open,link,rename,unlink,stat",
        "--jobs",
        "2",
        "--no-cache",
        "-o",
        "made",
    ),
    "check plain": ("check", *_SMALL, "--target", "plain", "--jobs", "2", "--no-cache", "-o", "run"),
    "check scalefs": ("check", *_SMALL, "--target", "scalefs", "--jobs", "2", "--no-cache", "-o", "run"),
    "check linux": ("check", *_SMALL, "--target", "linux", "--jobs", "2", "--no-cache", "-o", "run"),
    "resume": ("resume", "run"),
    "repeat": ("repeat", "kept/run.json", "-o", "run"),
    "conform": ("conform", "names", "--target", "scalefs", "--sequences", "300", "--jobs", "2", "-o", "found"),
    "report": ("report", "kept", "--format", "html", "-o", "page.html"),
    "diff": ("diff", "kept", "kept", "--format", "json"),
    "show": ("show", "TEST", "--from", "kept"),
    "locks": ("locks", "--format", "json", "--", "sort", "--parallel=2", "numbers"),
}
"""The verbs, each with arguments in whose folder `kept` is a whole run."""

_SECONDS = {"report": 1.5, "diff": 1.5, "show": 1.5, "check linux": 12.0}
"""So long a verb takes about; a kill may come up to then."""
_USUAL_SECONDS = 5.0


@dataclass
class Tally:
    """What came of the kills."""

    kills: Counter[str] = field(default_factory=Counter)
    """By verb and victim."""
    too_late: int = 0
    """The verb had ended, or had no such victim."""
    faults: list[str] = field(default_factory=list)


def run_kills(count: int, seed: int, folder: Path, minutes: float = 600.0) -> Tally:
    """Makes this many kills below the folder, which is empty, or as many as the time allows."""
    deadline = time.monotonic() + 60 * minutes
    tally = Tally()
    kept = folder / "kept"
    _finish(("check", *_SMALL, "--target", "plain", "--jobs", "2", "-o", str(kept)), folder, dict(os.environ))
    test = next(line for line in _lines(kept / "verdicts.jsonl") if "test" in line or "id" in line)
    name = str(test.get("test") or test.get("id"))
    number = 0
    while sum(tally.kills.values()) < count and time.monotonic() < deadline:
        number += 1
        chance = random.Random(f"{seed} {number}")
        verb = chance.choice(sorted(VERBS))
        at_seconds = chance.uniform(0.05, _SECONDS.get(verb, _USUAL_SECONDS))
        victim = chance.choice(("tool", "tool", "child", "emulator"))
        how = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)) if victim == "tool" else signal.SIGKILL
        place = folder / f"round-{number}"
        round_ = _Round(place, verb, kept, name, at_seconds, victim, how)
        try:
            if round_.run():
                tally.kills[f"{verb}: {victim}"] += 1
            else:
                tally.too_late += 1
        except AssertionError as error:
            tally.kills[f"{verb}: {victim}"] += 1
            tally.faults.append(
                f"seed {seed}, number {number}, {verb}, {how.name} of {victim} at {at_seconds:.2f} s: {error}"
            )
        finally:
            for process in round_.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            shutil.rmtree(place, ignore_errors=True)
    return tally


@dataclass
class _Round:
    place: Path
    verb: str
    kept: Path
    test: str
    at_seconds: float
    victim: str
    how: signal.Signals

    def run(self) -> bool:
        """Whether there was something to kill; raises AssertionError for what is left or cannot be read."""
        temporary = self.place / "tmp"
        temporary.mkdir(parents=True)
        (self.place / "kept").symlink_to(self.kept)
        (self.place / "numbers").write_text("".join(f"{one * 7919 % 10007}\n" for one in range(10007)))
        environment = {**os.environ, "TMPDIR": str(temporary), _MARK: str(self.place)}
        arguments = [self.test if one == "TEST" else one for one in VERBS[self.verb]]
        if self.verb == "resume":  # of a run that was interrupted somewhere
            shutil.copytree(self.kept, self.place / "run")
            verdicts = self.place / "run" / "verdicts.jsonl"
            verdicts.write_bytes(verdicts.read_bytes()[: verdicts.stat().st_size // 2])
            (self.place / "run" / "summary.json").unlink()
        with open(self.place / "messages", "wb") as messages:
            tool = subprocess.Popen(
                [sys.executable, "-m", "commutant", *arguments],
                cwd=self.place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                start_new_session=True,
            )
        hit = self._kill(tool)
        try:
            code = tool.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            tool.kill()
            raise AssertionError(f"it went on for {_END_SECONDS:g} s") from None
        said = (self.place / "messages").read_text(errors="replace")
        assert "Traceback" not in said and "a defect of commutant" not in said, said[-400:]
        self._look_for_leftovers()
        if hit and not (self.victim == "tool" and self.how == signal.SIGKILL):
            assert code in (0, 1, 3, 130, -signal.SIGINT, -self.how), f"exit code {code}: {said[-200:]}"
        self._go_on(environment)
        return hit

    def _kill(self, tool: subprocess.Popen[bytes]) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            tool.wait(self.at_seconds)
            return False
        if self.victim == "tool":
            tool.send_signal(self.how)
            return True
        names = {process: _command(process) for process in self.processes() if process != tool.pid}
        wanted = [process for process, name in names.items() if ("qemu" in name) == (self.victim == "emulator")]
        for process in wanted[-1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, self.how)
                return True
        return False

    def processes(self) -> list[int]:
        """All processes of this round that are no zombies."""
        return [process for process in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_ours(process)]

    def _is_ours(self, process: int) -> bool:
        try:
            environment = Path(f"/proc/{process}/environ").read_bytes()
        except OSError:
            return False
        return f"{_MARK}={self.place}\0".encode() in environment

    def _look_for_leftovers(self) -> None:
        deadline = time.monotonic() + _GONE_SECONDS
        while left := self.processes():
            if time.monotonic() > deadline:
                raise AssertionError(f"processes left: {[_command(one) for one in left]}")
            time.sleep(0.05)
        temporary = sorted(os.listdir(self.place / "tmp"))
        if self.verb == "locks" and self.how == signal.SIGKILL:  # the next run of `locks` removes it (folder.py)
            temporary = [name for name in temporary if not name.startswith("commutant-locks-")]
        assert not temporary, f"temporary files left: {temporary}"
        known = {"tmp", "kept", "numbers", "messages", "run", "made", "found", "page.html"}
        beside = {path.name for path in self.place.iterdir()} - known
        assert not beside, f"left beside what was asked for: {beside}"

    def _go_on(self, environment: dict[str, str]) -> None:
        """What is there can be read; a run goes on to its end."""
        run = self.place / "run"
        if run.exists():
            for arguments in (
                ("report", "run", "--format", "json"),
                ("resume", "run"),
                ("report", "run", "--format", "json"),
            ):
                _finish(arguments, self.place, environment)
        for corpus in self.place.glob("made/*.jsonl.gz"):
            _finish(("diff", str(corpus), str(corpus), "--format", "json"), self.place, environment)


def _finish(arguments: Sequence[str], place: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "commutant", *arguments]
    answer = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=_END_SECONDS, check=False
    )
    whole = arguments[0] == "resume" and "nothing is left to run" in answer.stderr
    assert answer.returncode == 0 or whole, (
        f"then `{' '.join(arguments)}` gives {answer.returncode}: {answer.stderr[-300:]}"
    )


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120]
    except OSError:
        return ""


def _lines(path: Path) -> Iterator[dict[str, object]]:
    with path.open() as file:
        for line in file:
            yield json.loads(line)


def main() -> None:
    """Prints how many kills of what there were, and each fault."""
    count, seed, minutes = (int(given) for given in (*sys.argv[1:], *("20", "1", "600")[len(sys.argv) - 1 :]))
    folder = Path(tempfile.mkdtemp(prefix="commutant-kills-"))
    try:
        tally = run_kills(count, seed, folder, minutes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for what, times in sorted(tally.kills.items()):
        print(f"{times:4}  {what}")
    print(f"{sum(tally.kills.values())} kills, {tally.too_late} came too late, {len(tally.faults)} faults")
    print(*tally.faults, sep="\n")
    sys.exit(bool(tally.faults))


if __name__ == "__main__":
    main()
