"""Mutants of the crates, for `make test-mutants`: built together, tried one by one.

cargo-mutants, which is installed once as pinned below, lists the mutants. Those that are drawn are woven into a copy of
the tree (`mutants_woven.py`), and the tests of the crates that have to notice are built there: in debug mode; with a
scheduler that chooses threads (`--cfg shuttle`), as in `make test ALL=1`; and, for those that are left, the models of
`make test-long` (`--cfg loom`). What the compiler refuses is taken out of the text;
the mutants of constants cannot have a switch and are left out of the draw's results. Then each test runs once to tell
which mutants it reaches, and for each mutant those tests run that reach it, the quick ones first, until one fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mutants_kept import GRACE_SECONDS, KEPT, PATIENCE, Kept, Result, bounded, draw, key_of
from mutants_woven import CHOSEN, REACHED, SWITCH, Change, Woven, offset, weave
from steps import ROOT, StepFailed, environment, files_below, run, say

VERSION = "27.1.0"
TOOLS = ROOT / "target" / "tools"
TREE = KEPT / "tree"
"""The copy of the tree; it stays, so that only what has changed is built again."""

CRATES: dict[str, tuple[str, ...]] = {
    "posix-calls": ("plain", "scalefs", "transact"),
    "plain": ("plain", "scalefs", "transact"),
    "scalefs": ("scalefs", "transact"),
    "transact": ("transact",),
    "address-space": ("address-space",),
    "sockets": ("sockets",),
    "hashdir": ("hashdir",),
    "refcache": ("refcache",),
    "maxima": ("maxima",),
    "radix": ("radix",),
    "pages": ("pages",),
    "percpu": ("percpu",),
    "epoch": ("epoch",),
    "rounds": ("rounds", "epoch", "refcache"),
    "commit": ("commit", "hashdir"),
    "seqlock": ("seqlock", "radix"),
    "history": ("history",),
    "wire": ("wire",),
    "symbolic": ("symbolic",),
    "lock-study": ("lock-study",),
    "mtrace": ("mtrace",),
}
"""By crate: those whose tests have to notice."""
SCALES = list(CRATES)[: list(CRATES).index("seqlock") + 1]
"""The calls, and the structures that they rest on."""

TOGETHER = [("posix-calls", "plain", "scalefs", "transact")]
"""Crates whose mutants go into one text if several of them are asked for: it takes many minutes to build the tests."""
PLANTED = "planted_causes.rs"
"""A module of faults that tests plant; only its feature builds it."""

FIRST_LIMIT_SECONDS = 900.0
TRIES = 40
"""As often the compiler may refuse a woven text; each time it says of more mutants that they do not build."""
SCHEDULED = (
    *("histories", "data_histories", "mapped_histories", "memory_histories", "family_histories", "adya", "claims"),
    *("deaths", "family_deaths", "socket_deaths", "models"),
)
"""Test programs that try more under a scheduler than without one."""
COMPILING = "misuse"
"""The test program that has other programs compiled, for minutes, and runs none of them: it reaches no mutant."""


@dataclass(frozen=True)
class Mutant:
    """A mutant as cargo-mutants lists it; `name` is its line there."""

    name: str
    path: Path
    start: int
    end: int
    text: str
    genre: str


@dataclass(frozen=True)
class Test:
    """A test that a program holds: the command that runs it alone, where, and how long that takes."""

    name: str
    command: tuple[str, ...]
    folder: Path
    seconds: float = 0.0


@dataclass(frozen=True)
class Build:
    """A way to build the tests: options of cargo, environment, and test programs (all if none are named)."""

    name: str
    options: tuple[str, ...]
    extra: Mapping[str, str]
    programs: tuple[str, ...] = ()


SETTINGS = {"opt-level": 1, "debug": "false", "incremental": "false", "lto": '"off"'}
"""For programs that are built once and that no one looks into. Of an interrupted build nothing half made is used."""
QUICKLY_BUILT = tuple(part for name, value in SETTINGS.items() for part in ("--config", f"profile.dev.{name}={value}"))

BUILDS = (
    Build("debug", QUICKLY_BUILT, {"RUSTFLAGS": "--cap-lints allow"}),
    Build(
        "schedules",
        ("--profile", "schedules", "--config", "profile.schedules.debug-assertions=true"),
        {"RUSTFLAGS": "--cap-lints allow --cfg shuttle"},
        SCHEDULED,
    ),
    Build("models", ("--release",), {"RUSTFLAGS": "--cap-lints allow --cfg loom"}, ("models",)),
)


def _builds(quick: bool) -> Sequence[Build]:
    return BUILDS[:-1] if quick else BUILDS


def install() -> Path:
    """The tool; installed if it is not there. Raises StepFailed if it cannot be."""
    program = TOOLS / "bin" / "cargo-mutants"
    if not program.exists() or VERSION not in run([program, "mutants", "--version"]):
        # It does nothing but list mutants: not to optimise it takes a third of the time.
        options = ["--locked", "--force", "--debug", "--root", str(TOOLS)]
        run(["cargo", "install", "cargo-mutants", "--version", VERSION, *options])
    return program


class Crate:
    """A crate with all its mutants."""

    def __init__(self, name: str) -> None:
        self.name = name
        every = json.loads(run([install(), "mutants", "--list", "--json", "--package", name]))
        self.every = [_read(entry) for entry in every if _can_have_switch(entry)]
        self.folder = next(ROOT.glob(f"crates/*/{name}"))

    def results(self, count: int, seed: int, part: tuple[int, int], quick: bool = False) -> list[Result]:
        """What becomes of the mutants that are drawn; those that are known are not tried again. `quick` asks no models.

        Raises StepFailed if the tests fail without a mutant.
        """
        try_together([self], count, seed, part, quick)
        kept, drawn = self._kept(_builds(quick)), self._drawn(count, seed, part)
        found = [kept.find(key) for key, _ in drawn]
        return [result for result in found if result is not None and result.outcome != "constant"]

    def missing(
        self, count: int, seed: int, part: tuple[int, int], builds: Sequence[Build]
    ) -> tuple[Kept, list[tuple[str, Mutant]]]:
        """What is drawn and not known yet, each with its key, and what is."""
        kept = self._kept(builds)
        return kept, [(key, mutant) for key, mutant in self._drawn(count, seed, part) if kept.find(key) is None]

    def _kept(self, builds: Sequence[Build]) -> Kept:
        tests = [file for crate in CRATES[self.name] for file in files_below(*_test_folders(crate))]
        return Kept(self.name, tests, *(build.name for build in builds))

    def _drawn(self, count: int, seed: int, part: tuple[int, int]) -> list[tuple[str, Mutant]]:
        drawn = draw(self.every, count, seed, part)
        return [(key_of(mutant.path.read_bytes(), f"{mutant.name} {mutant.start}"), mutant) for mutant in drawn]


def try_together(crates: Sequence[Crate], count: int, seed: int, part: tuple[int, int], quick: bool) -> None:
    """Tries what is drawn of crates and not known yet, all of it woven into one text, with the tests of all of them.

    Raises StepFailed if the tests fail without a mutant.
    """
    builds = _builds(quick)
    missing = {crate.name: crate.missing(count, seed, part, builds) for crate in crates}
    every = [(kept, key, mutant) for kept, of_crate in missing.values() for key, mutant in of_crate]
    if every:
        names = list(dict.fromkeys(name for crate in crates for name in CRATES[crate.name]))
        Together([crate for crate in crates if missing[crate.name][1]], names).try_all(every, builds)


class Together:
    """Crates whose mutants are woven into one text, and those whose tests have to notice."""

    def __init__(self, crates: Sequence[Crate], tests_of: Sequence[str]) -> None:
        self._crates, self._tests_of = crates, tests_of
        self._name = ", ".join(crate.name for crate in crates)

    def try_all(self, missing: Sequence[tuple[Kept, str, Mutant]], builds: Sequence[Build]) -> None:
        """Tries mutants, and keeps what becomes of each."""
        places = {number: (kept, key) for number, (kept, key, _) in enumerate(missing, start=1)}
        mutants = {number: mutant for number, (_, _, mutant) in enumerate(missing, start=1)}
        left = dict(mutants)

        def keep(number: int, result: Result) -> None:
            kept, key = places[number]
            kept.add(key, result)
            del left[number]

        for build in builds:
            _copy_tree()
            tests, refused = self._built(build, left)
            for number, outcome in refused.items():
                keep(number, Result(mutants[number].name, outcome))
            reaching = _reaching(self._name, build, tests)
            for place, number in enumerate(list(left), start=1):
                result = _outcome(mutants[number].name, build, number, reaching.get(number, []))
                last = build is builds[-1]
                if result.outcome != "survived" or last:
                    keep(number, result)
                shown = "survived" if last else "not yet"
                said = result.outcome if result.outcome != "survived" else shown
                print(f"{self._name} {build.name} {place}: {said:8} {result.mutant} {result.by}", flush=True)

    def _built(self, build: Build, mutants: Mapping[int, Mutant]) -> tuple[list[Test], dict[int, str]]:
        """The tests, built with all mutants that the compiler takes, and what is wrong with the others."""
        left, refused = dict(mutants), dict[int, str]()
        for _ in range(TRIES):
            woven = self._write(left)
            refused.update(
                (number, "unviable") for number in left if not any(number in text.pieces for text in woven.values())
            )
            found = _refused_by_compiler(build, [crate.name for crate in self._crates], woven)
            for number, outcome in {**found, **refused}.items():
                refused[number] = outcome
                left.pop(number, None)
            if not found:
                say(self._name, f"{len(left)} mutants woven into one text ({build.name})")
                return _tests(build, self._tests_of), refused
        raise StepFailed(f"{self._name}: after {TRIES} tries the compiler still refuses mutants")

    def _write(self, mutants: Mapping[int, Mutant]) -> dict[str, Woven]:
        """Writes the files with these mutants, and the crates' others as they are; returns the woven by their path."""
        files = sorted(file for crate in self._crates for file in crate.folder.glob("src/**/*.rs"))
        by_file: dict[Path, list[Change]] = {file: [] for file in files}
        for number, mutant in mutants.items():
            by_file[mutant.path].append(Change(number, mutant.start, mutant.end, mutant.text, mutant.genre))
        woven = {}
        for file, changes in by_file.items():
            path = str(file.relative_to(ROOT))
            woven[path] = weave(file.read_bytes(), changes)
            text = woven[path].text
            if file.name == "lib.rs" and file.parent.name == "src":
                text += SWITCH.replace("COUNT", str(max(mutants, default=0))).encode()
            _write_if_changed(TREE / path, text)
        return woven


def _can_have_switch(entry: dict[str, object]) -> bool:
    """No field that is left out, no function that returns an `impl Trait`, which is one type; no tests, no faults."""
    function = entry["function"]
    returned = function["return_type"] if isinstance(function, dict) else ""
    is_impl = entry["genre"] == "FnValue" and "impl " in str(returned)
    return (
        entry["genre"] != "StructField"
        and not is_impl
        and not _is_of_tests(entry)
        and Path(str(entry["file"])).name != PLANTED
    )


def _is_of_tests(entry: dict[str, object]) -> bool:
    """Whether it stands in a file's tests, which come last there; of a constant no function tells it."""
    span = entry["span"]
    assert isinstance(span, dict)
    lines = (ROOT / str(entry["file"])).read_text(encoding="utf-8").splitlines()
    return "mod tests {" in lines[: span["start"]["line"]]


def _read(entry: dict[str, object]) -> Mutant:
    span, path = entry["span"], ROOT / str(entry["file"])
    assert isinstance(span, dict)
    lines = path.read_bytes().splitlines(keepends=True)
    start, end = (offset(lines, span[edge]["line"], span[edge]["column"]) for edge in ("start", "end"))
    return Mutant(str(entry["name"]), path, start, end, str(entry["replacement"]), str(entry["genre"]))


def _test_folders(crate: str) -> tuple[str, ...]:
    folder = next(ROOT.glob(f"crates/*/{crate}")).relative_to(ROOT)
    return f"{folder}/src", f"{folder}/tests"


def _copy_tree() -> None:
    """Brings the copy up to date: what git knows, and what is new and not ignored."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]).split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    for name in wanted:
        _write_if_changed(TREE / name, (ROOT / name).read_bytes())
    for file in files_below(str(TREE.relative_to(ROOT) / "crates")):
        if str(file.relative_to(TREE)) not in wanted:
            file.unlink()


def _write_if_changed(file: Path, content: bytes) -> None:
    if not file.exists() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _cargo(build: Build, arguments: Sequence[str]) -> tuple[int, list[dict[str, object]], str]:
    """Runs cargo in the copy; its exit code, its messages, and what else it printed."""
    extra = {**build.extra, "CARGO_TARGET_DIR": str(KEPT / f"build-{build.name}")}
    options = ["--message-format=json", "--locked", "--offline", *build.options]
    ended = subprocess.run(
        ["cargo", *arguments, *options], cwd=TREE, env=environment(extra), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines() if line[:1] == "{"], ended.stderr


def _refused_by_compiler(build: Build, crates: Sequence[str], woven: Mapping[str, Woven]) -> dict[int, str]:
    """The mutants that the compiler refuses; none if it takes all. Raises StepFailed if it refuses something else."""
    chosen = [part for crate in crates for part in ("--package", crate)]
    code, messages, printed = _cargo(build, ["check", "--lib", *chosen])
    if code == 0:
        return {}
    found: dict[int, str] = {}
    errors = []
    for entry in messages:
        message = entry.get("message")
        if not isinstance(message, dict) or message["level"] != "error":
            continue
        errors.append(message["rendered"])
        # A constant cannot be chosen when the program runs: the mutant has its meaning, but not this way.
        code_of = (message.get("code") or {}).get("code")
        outcome = "constant" if code_of in ("E0015", "E0658") else "unviable"
        for span in message["spans"]:
            text = woven.get(span["file_name"])
            if text is not None and span["is_primary"]:
                culprits = text.culprits(span["byte_start"], span["byte_end"])
                if not culprits and code_of == "E0004":
                    culprits = text.arm_behind(span["byte_end"])
                found.update(dict.fromkeys(culprits, outcome))
    if not found:
        told = " ".join(errors)[:2000] or printed[-2000:]
        raise StepFailed(f"{', '.join(crates)}: cannot be built with mutants: {told}")
    return found


def _tests(build: Build, crates: Sequence[str]) -> list[Test]:
    """Builds the test programs of the crates and asks them for their tests. Raises StepFailed if they do not build."""
    chosen = [part for crate in crates for part in ("--package", crate)]
    if build.programs:
        there = {file.stem for crate in crates for file in ROOT.glob(f"crates/*/{crate}/tests/*.rs")}
        programs = [part for name in build.programs if name in there for part in ("--test", name)]
        if not programs:
            return []
    else:
        programs = []  # with all examples, which `--tests` leaves out: there are tests that run them
    code, messages, printed = _cargo(build, ["test", "--no-run", *chosen, *programs])
    if code != 0:
        told = [entry.get("message") for entry in messages]
        errors = [str(message["rendered"]) for message in told if isinstance(message, dict)]
        raise StepFailed(f"the tests of {', '.join(crates)} do not build: {''.join(errors)[-2000:]}{printed[-2000:]}")
    tests: list[Test] = []
    for entry in messages:
        profile, program = entry.get("profile"), entry.get("executable")
        if isinstance(profile, dict) and profile["test"] and program and not Path(str(program)).match(f"{COMPILING}-*"):
            folder = Path(str(entry["manifest_path"])).parent
            tests += _tests_of(str(program), folder)
    return tests


def _tests_of(program: str, folder: Path) -> Iterable[Test]:
    """The tests that a program lists; itself, if it has no harness that could."""
    ended = subprocess.run(
        [program, "--list", "--format", "terse"], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    names = [line.removesuffix(": test") for line in ended.stdout.splitlines() if line.endswith(": test")]
    stem = Path(program).name.rpartition("-")[0]
    for name in names:
        yield Test(f"{stem} {name}", (program, "--exact", name, "--test-threads", "1"), folder)


def _reaching(crate: str, build: Build, tests: Sequence[Test]) -> dict[int, list[Test]]:
    """By mutant, the tests that reach it, the quick ones first; each runs once, without a mutant, and has to pass."""
    found: dict[int, list[Test]] = {}
    with tempfile.TemporaryDirectory(prefix="commutant-mutants-") as folder:
        for number, test in enumerate(tests):
            file = Path(folder) / str(number)
            began = time.monotonic()
            if (ended := _run(test, {REACHED: str(file)}, FIRST_LIMIT_SECONDS)) != 0:
                raise StepFailed(f"{crate}: {test.name} fails without a mutant ({ended}): {' '.join(test.command)}")
            timed = replace(test, seconds=time.monotonic() - began)
            for mutant, is_reached in enumerate(file.read_bytes() if file.exists() else b""):
                if is_reached:
                    found.setdefault(mutant, []).append(timed)
    say(crate, f"{len(tests)} tests, {len(found)} mutants reached ({build.name})")
    return {number: sorted(reached, key=lambda test: test.seconds) for number, reached in found.items()}


def _outcome(name: str, build: Build, number: int, tests: Iterable[Test]) -> Result:
    for test in tests:
        ended = _run(test, {CHOSEN: str(number)}, PATIENCE * test.seconds + GRACE_SECONDS)
        if ended != 0:
            return Result(name, "timeout" if ended is None else "killed", f"{build.name}: {test.name}")
    return Result(name, "survived")


def _run(test: Test, extra: Mapping[str, str], limit_seconds: float) -> int | None:
    """The exit code of a test, or nothing if it does not end; none of its processes stays."""
    with tempfile.TemporaryDirectory(prefix="commutant-mutants-") as place:
        added = {
            "HISTORIES_MS": "0",
            "PROPTEST_RNG_SEED": "2013",
            "CARGO_MANIFEST_DIR": str(test.folder),
            "RUST_BACKTRACE": "0",
            "TMPDIR": place,
            **extra,
        }
        process = subprocess.Popen(
            test.command, cwd=test.folder, env=environment(added), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=bounded,
        )  # fmt: skip
        try:
            return process.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
