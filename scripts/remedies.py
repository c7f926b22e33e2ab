"""`make remedies`: builds each patch of `patches/linux`, asks the tests that it concerns, and proves what it freed.

For each series of Linux it first takes the run of the trimmed kernel (`runs/remedies/6.1/base`, all tests of posix18,
and again for the noise). What is there already is not done again, so an interrupted demonstration goes on. Prints a
table per series: tests, predicted, freed as predicted, besides, left by noise alone, worse, new, wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


def say(what: str) -> None:
    """What is done next, beside the table."""
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


def is_kept(name: str) -> bool:
    """Whether there is a kernel of this name."""
    kept = json.loads(commutant("kernel", "list", "--format", "json"))["kernels"]
    return any(name in one["names"] for one in kept)


def kernel(series: str, name: str, *patches: str) -> str:
    """A target with the kernel of these patches; built if it is not there."""
    full = f"remedies-{series}-{name}"
    if not is_kept(full):
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
    return f"| {name} | {proof['tests']:,} | " + " | ".join(f"{count:,}" for count in counts) + " |"


def demonstrate(series: str) -> None:
    """Prints the table of a series."""
    runs = RUNS / series
    runs.mkdir(parents=True, exist_ok=True)
    for reference in REFERENCES[series][1:]:
        if not is_kept(reference):
            commutant("prepare", reference)
    target = kernel(series, "base")
    base = run_of(runs / "base", "posix18", "--target", target, "--seed", "1")
    again = run_of(runs / "again", str(base), "--target", target, "--seed", "2")
    print(f"Linux {series}\n\n| patch | tests | foretold | freed | besides | left by noise | worse | new | wrong |")
    print("| --- " * 9 + "|", flush=True)
    here = {name: CHANGES[name] for name in CHANGES if (PATCHES / series / f"{name}.patch").is_file()}
    for name, (pattern, changes) in here.items():
        patched = kernel(series, name, name)
        asked = ("--of", str(base), "--sharing", pattern, "--sample", str(SAMPLE), "--target", patched)
        print(row(base, again, name, run_of(runs / name, *asked), changes), flush=True)
    names = [name for name in here if name != NOT_TOGETHER]
    everything = run_of(runs / "all", str(base), "--target", kernel(series, "all", *names), "--seed", "1")
    print(row(base, again, "all together", everything, tuple(word for name in names for word in here[name][1])))
    print(flush=True)


def main() -> int:
    """Prints the tables; the exit code is that of the command line."""
    for series in sys.argv[1:] or REFERENCES:
        demonstrate(series)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StepFailed as error:
        sys.exit(f"remedies: {error}")
