"""`make remedies`: builds each patch of `patches/linux`, asks the tests that it concerns, and proves what it freed.

It says first what each step takes in time and space; with `--plan` nothing else. For each series of Linux it takes the
run of the trimmed kernel (`runs/remedies/6.1/base`, all tests of posix18, and again for the noise). What is there
already is not done again, so an interrupted demonstration goes on. Prints a table per series: tests, predicted, freed
as predicted, besides, left by noise alone, worse, new, wrong. After them come the transfers of lines that each patch is
about: before, as predicted, and as counted, the median error of the tests, and in how many the direction is right.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps import ROOT, StepFailed

COMMUTANT = ROOT / ".venv" / "bin" / "commutant"
PATCHES = ROOT / "patches" / "linux"
RUNS = ROOT / "runs" / "remedies"

REFERENCES: dict[str, tuple[str, ...]] = {"6.1": (), "6.12": ("--reference", "linux-image-6.12-amd64")}
"""Series of Linux, and which kernel of Debian's has the types that are to be met."""

CHANGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "address-space-host": ("address_space.*", ("--move", "address_space.host")),
    "close-no-file": ("files_struct.*", ("--drop-write", "files_struct.file_lock")),
    "cred-non-rcu": ("cred.*", ("--drop-write", "cred.non_rcu")),
    "cred-usage": ("cred.*", ("--move", "cred.usage")),
    "dentry-subdirs": ("dentry.d_child*", ("--move", "dentry.d_subdirs")),
    "fd-array-own-line": ("files_struct.*", ("--move", "files_struct.fd_array")),
    "fd-array-spread": ("files_struct.*", ("--spread", "files_struct.fd_array")),
    "inode-nlink": ("inode.*", ("--move", "inode.i_nlink")),
    "inode-rdev": ("inode.i_rdev*", ("--drop-read", "inode.i_rdev")),
    "inode-mtime": ("inode.*", ("--move", "inode.i_mtime")),
    "sb-remove-count": ("super_block.*", ("--move", "super_block.s_remove_count")),
    "shmem-huge": ("shmem_sb_info.*", ("--move", "shmem_sb_info.huge")),
    "shmem-nosec": ("inode.i_flags*", ("--drop-write", "inode.i_flags")),
    "signal-own-fault": ("init_ucounts*", ("--drop", "init_ucounts")),
    "vma-shared-last": ("vm_area_struct.*", ("--move", "vm_area_struct.shared")),
}
"""For each patch the variables whose tests are asked, and the change that foretells it; they apply in this order. A
series has those that lie in its folder."""

NOT_TOGETHER = "fd-array-own-line"
"""The first part of another one."""

SAMPLE = 20


@dataclass(frozen=True)
class Takes:
    """What a step takes, as far as one knows before: time of two processors, and space."""

    minutes: int
    megabytes: int

    def __str__(self) -> str:
        """In words."""
        space = f"{self.megabytes / 1000:.1f} GB" if self.megabytes >= 1000 else f"{self.megabytes} MB"
        return f"about {self.minutes} minutes, {space}"


BASE_KERNEL = Takes(15, 3300)
"""Sources and objects are kept for the patches."""
WHOLE_RUN = Takes(8, 20)
PATCH = Takes(4, 35)
"""A kernel and the run of the tests that it concerns."""
WIDE_PATCHES = {"address-space-host": Takes(10, 35), "cred-usage": Takes(10, 35), "vma-shared-last": Takes(12, 35)}
"""What changes types that many files use."""
ALL_PATCHES = Takes(25, 50)


def say(what: str) -> None:
    """What is done next, in addition to the table."""
    print(f"remedies: {what}", file=sys.stderr, flush=True)


def commutant(*arguments: str, fails: bool = False) -> str:
    """What the command prints; raises StepFailed if it fails, unless a failed gate is an answer."""
    answer = subprocess.run([COMMUTANT, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode not in ((0, 1) if fails else (0,)):
        raise StepFailed(f"commutant {' '.join(arguments)}: exit code {answer.returncode}")
    return answer.stdout


def run_of(path: Path, *what: str) -> Path:
    """A finished run; checked if it is not there."""
    if not (path / "summary.json").is_file():
        say(f"{'going on with' if path.is_dir() else 'checking'} {path.relative_to(ROOT)}")
        commutant("resume", str(path)) if path.is_dir() else commutant("check", *what, "-o", str(path))
    return path


def kernels() -> set[str]:
    """The names of all kernels that are there."""
    kept = json.loads(commutant("kernel", "list", "--format", "json"))["kernels"]
    return {name for one in kept for name in one["names"]}


def kernel_name(series: str, name: str) -> str:
    """What the kernel of a step is called."""
    return f"remedies-{series}-{name}"


def kernel(series: str, name: str, *patches: str) -> str:
    """A target with the kernel of these patches; built if it is not there."""
    full = kernel_name(series, name)
    if full not in kernels():
        say(f"building {full}")
        options = [word for patch in patches for word in ("--patch", str(PATCHES / series / f"{patch}.patch"))]
        commutant("kernel", "build", "--source", "debian", "--name", full, *REFERENCES[series], *options)
    return f"linux:kernel={full}"


def row(base: Path, again: Path, name: str, new: Path, changes: tuple[str, ...]) -> str:
    """A line of the table."""
    words = ("prove", str(base), str(new), "--again", str(again), *changes, "--format", "json")
    proof = json.loads(commutant(*words, fails=True))
    appeared = sum(one["tests"] for one in proof["appeared"])
    freed, foretold, noise = len(proof["freed"]), proof["foretold"], proof["left_by_noise"]
    besides = freed - proof["freed_as_foretold"]
    counts = (foretold, proof["freed_as_foretold"], besides, noise, len(proof["worse"]), appeared, len(proof["wrong"]))
    cells = [name, f"{proof['tests']:,}", *(f"{count:,}" for count in counts), transfers(proof["transfers"])]
    return f"| {' | '.join(cells)} |"


def transfers(counted: dict[str, Any] | None) -> str:
    """What came of the transfers that a change is about, for caches that share a modified line on a read."""
    if counted is None:
        return "-"
    every = counted["every"]
    means = ", ".join(f"{every[name]['plain']:.1f}" for name in ("before", "predicted", "counted"))
    return f"{means}; {every['median_error']:.2f}, {every['right']:,} of {every['tests']:,}"


def of_series(series: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The patches of a series, in the order in which they apply."""
    return {name: CHANGES[name] for name in CHANGES if (PATCHES / series / f"{name}.patch").is_file()}


def plan(series: str) -> Iterator[str]:
    """The steps of a series, with what each takes and whether it is there."""
    kept, runs = kernels(), RUNS / series

    def is_run(name: str) -> bool:
        return (runs / name / "summary.json").is_file()

    def line(what: str, takes: Takes, is_there: bool) -> str:
        return f"Linux {series}, {what}: {takes}{' (there)' if is_there else ''}"

    yield line("kernel without patches", BASE_KERNEL, kernel_name(series, "base") in kept)
    yield line("run of it", WHOLE_RUN, is_run("base"))
    yield line("run of it again", WHOLE_RUN, is_run("again"))
    for name in of_series(series):
        yield line(name, WIDE_PATCHES.get(name, PATCH), kernel_name(series, name) in kept and is_run(name))
    yield line("all patches together", ALL_PATCHES, kernel_name(series, "all") in kept and is_run("all"))


_COLUMNS = (
    *("patch", "tests", "predicted", "freed", "besides", "left by noise", "worse", "new", "wrong"),
    "transfers before, predicted, counted; error, right",
)


def demonstrate(series: str) -> None:
    """Prints the table of a series."""
    runs = RUNS / series
    runs.mkdir(parents=True, exist_ok=True)
    for reference in REFERENCES[series][1:]:
        if reference not in kernels():
            commutant("prepare", reference)
    target = kernel(series, "base")
    base = run_of(runs / "base", "posix18", "--target", target, "--seed", "1")
    again = run_of(runs / "again", str(base), "--target", target, "--seed", "2")
    print(f"Linux {series}\n\n| {' | '.join(_COLUMNS)} |")
    print("| --- " * len(_COLUMNS) + "|", flush=True)
    here = of_series(series)
    for name, (pattern, changes) in here.items():
        patched = kernel(series, name, name)
        asked = ("--of", str(base), "--sharing", pattern, "--sample", str(SAMPLE), "--target", patched)
        print(row(base, again, name, run_of(runs / name, *asked), changes), flush=True)
    names = [name for name in here if name != NOT_TOGETHER]
    everything = run_of(runs / "all", str(base), "--target", kernel(series, "all", *names), "--seed", "1")
    print(row(base, again, "all together", everything, tuple(word for name in names for word in here[name][1])))
    print(flush=True)


def main(arguments: list[str]) -> int:
    """Prints the tables, of all series or of those that are named; the exit code is that of the command line."""
    asked = [one for one in arguments if one != "--plan"] or list(REFERENCES)
    unknown = [one for one in asked if one not in REFERENCES]
    if unknown:
        raise StepFailed(f"expected --plan or series of Linux ({', '.join(REFERENCES)}), got {unknown[0]}")
    for series in asked:
        for step in plan(series):
            say(step)
    if "--plan" not in arguments:
        for series in asked:
            demonstrate(series)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except StepFailed as error:
        sys.exit(f"remedies: {error}")
