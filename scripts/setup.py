"""`make setup`: from a fresh clone to `.venv/bin/commutant`, and within a moment if nothing has changed.

In order: the emulator and the Rust toolchain that are there are judged, then come the system's packages (with a Rust
toolchain if there is none), the virtual environment with packages of known hashes, the crates,
the tracer plugin and the runner (copied into the package as files), the native module, the package `scalefs`, and the
kernel for the target `linux`. Everything that needs the network happens here; nothing afterwards does.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this runs with whatever `python3` is
    sys.exit(f"setup: Python 3.11 or newer is needed, not {sys.version.split()[0]}; try `make setup PYTHON=python3.11`")

import fcntl
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pack_debug
from emulators import judge_emulator
from rust import Toolchain, packages_of_rust
from steps import ROOT, VENV, StepFailed, content_hash, files_below, is_current, record, run, say, timed
from system_packages import fetch_missing_lists, install_missing, refresh_package_lists

THIS = Path(__file__).resolve()
PYTHON = VENV / "bin" / "python"
INTERPRETER = VENV / "pyvenv.cfg"
"""Says which Python the environment was made with."""

COMMUTANT = VENV / "bin" / "commutant"
WHEELS = VENV / "wheels"
LOCK = ROOT / "requirements-dev.lock"
SCALEFS = ROOT / "packages" / "scalefs"
ARTIFACTS = ROOT / "src" / "commutant" / "_artifacts"

ONE_UNIT = ("-C", "codegen-units=1")
"""What a compiler makes of a crate in parts, it describes in parts: whole, it takes a twentieth less of the wheel."""

WITHOUT_LINES = (*ONE_UNIT, "-C", "strip=debuginfo")
"""Of what no stack is named after, three quarters are lines that nothing reads. Names of functions stay."""


def virtual_environment() -> None:
    """Makes `.venv`, or takes the one that is there, with the packages of the lock file, each checked against its hash.

    Whichever Python runs this script, an environment that is there keeps its own: it may be in use, and is never
    deleted here. The wheels are kept next to the packages: the test that installs Commutant into an empty environment
    takes them from there. Raises StepFailed if the environment's Python is gone.
    """
    if PYTHON.is_symlink() and not PYTHON.exists():
        raise StepFailed(f"{PYTHON} leads to a Python that is gone; `make clean` removes the environment")
    if not PYTHON.exists():
        run([sys.executable, "-m", "venv", VENV])
    key = content_hash([LOCK, THIS, INTERPRETER])
    if is_current("packages", key, [WHEELS]):
        return
    with timed("Python packages", "downloaded, checked and installed"):
        pip: list[str | Path] = [PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        checked: list[str | Path] = ["--require-hashes", "--only-binary", ":all:", "-r", LOCK]
        run([*pip, "download", *checked, "--dest", WHEELS])
        run([*pip, "install", "--no-index", "--find-links", WHEELS, *checked])
    record("packages", key)


def crates(toolchain: Toolchain) -> None:
    """Downloads what is missing of the crates of Cargo.lock, with those that only tests or other platforms use."""
    fetch = [toolchain.cargo, "fetch", "--locked"]
    try:
        run([*fetch, "--offline"])
    except StepFailed:
        with timed("Rust crates", "downloaded"):
            run(fetch)


def rust_sources() -> list[Path]:
    """Everything that a Rust build reads."""
    return files_below("Cargo.toml", "Cargo.lock", "crates", "src/commutant/targets/library/rust")


def artifacts(toolchain: Toolchain) -> None:
    """Builds the tracer plugin and the runners and puts them into the package's `_artifacts`."""
    plugin = ARTIFACTS / "libcommutant_mtrace_plugin.so"
    runner = ARTIFACTS / "commutant-runner"
    scalefs_runner = ARTIFACTS / "commutant-scalefs-runner"
    library_runner = ARTIFACTS / "commutant-library-runner"
    locks_plugin = ARTIFACTS / "libcommutant_locks_plugin.so"
    lock_preload = ARTIFACTS / "libcommutant_lock_preload.so"
    transfers_plugin = ARTIFACTS / "libcommutant_transfers_plugin.so"
    scale_runner = ARTIFACTS / "commutant-scale-runner"
    scale_turns = ARTIFACTS / "libcommutant_scale_turns.so"
    try_program = ARTIFACTS / "commutant-try"
    all_of_them = [plugin, runner, scalefs_runner, library_runner, locks_plugin, lock_preload]
    olf_adapters = ARTIFACTS / "libcommutant_olf.so"
    all_of_them += [transfers_plugin, scale_runner, scale_turns, try_program, olf_adapters]
    key = content_hash([*rust_sources(), THIS, Path(pack_debug.__file__)], toolchain.version)
    if is_current("artifacts", key, all_of_them):
        return
    ARTIFACTS.mkdir(exist_ok=True)
    with timed("tracer plugin", "built"):
        install_file(toolchain.build("emulator/mtrace-plugin", "cdylib", *WITHOUT_LINES), plugin)
    with timed("runner", "built"):
        # Static, since it is the only file in the guest's initial file system.
        flags = (*WITHOUT_LINES, "-C", "target-feature=+crt-static")
        install_file(toolchain.build("checker/runner", "bin", *flags), runner)
    with timed("runner of scalefs", "built"):
        # At fixed addresses, so that those in a trace are those of its symbols; with lines, which its findings name.
        fixed = (*ONE_UNIT, "-C", "target-feature=+crt-static", "-C", "relocation-model=static")
        install_file(toolchain.build("file-system/scalefs-runner", "bin", *fixed), scalefs_runner)
    with timed("runner of libraries", "built"):
        # Dynamic, since it loads shared objects.
        install_file(toolchain.build("checker/library-runner", "bin", *WITHOUT_LINES), library_runner)
    with timed("lock recorder", "built"):
        install_file(toolchain.build("emulator/locks-plugin", "cdylib", *WITHOUT_LINES), locks_plugin)
        install_file(toolchain.build("locks/lock-preload", "cdylib", *WITHOUT_LINES), lock_preload)
    with timed("counter of transfers", "built"):
        install_file(toolchain.build("emulator/transfers-plugin", "cdylib", *WITHOUT_LINES), transfers_plugin)
        built = toolchain.build("file-system/scale-runner", "bin", *fixed, cfg="virtual_cores")
        install_file(built, scale_runner)
        # In parts: what the C library calls before this one begins is translated before it is known to be no part of
        # the program, and whole it would hold what is called later, too.
        install_file(toolchain.build("scaling/scale-turns", "cdylib", "-C", "strip=debuginfo"), scale_turns)
    with timed("adapters of olf", "built"):
        # With all debug information: what a block of memory consists of has its name in findings from there.
        install_file(toolchain.build("checker/olf-adapter", "cdylib", "-C", "debuginfo=2"), olf_adapters)
    with timed("program of try", "built"):
        install_file(toolchain.build("trying/try-program", "bin", *WITHOUT_LINES), try_program)
    record("artifacts", key)


PICTURES = shutil.ignore_patterns("*.svg", "*.png", "*.webp")


def pages() -> None:
    """Copies what a wheel needs besides: the pages that hints name, and the headers for annotations."""
    destinations = (
        (ARTIFACTS / "docs" / "guides", (ROOT / "docs" / "guides",)),
        (ARTIFACTS / "docs" / "reference", (ROOT / "docs" / "reference",)),
        (ARTIFACTS / "include", tuple((ROOT / "crates").glob("*/*-annotation/include"))),
    )
    for destination, sources in destinations:
        shutil.rmtree(destination, ignore_errors=True)
        for source in sources:
            shutil.copytree(source, destination, ignore=PICTURES, dirs_exist_ok=True)


def install_file(built: Path, destination: Path) -> None:
    """Replaces the destination in one step: an emulator that has the old file mapped keeps it.

    Where variables live is left out: no finding needs it, and the standard library of Debian's Rust says it.
    """
    temporary = destination.with_name(destination.name + ".new")
    run(["objcopy", "--remove-section=.debug_loc", "--remove-section=.debug_loclists", built, temporary])
    pack_debug.pack_debug(temporary)
    temporary.replace(destination)


def native_module(toolchain: Toolchain) -> None:
    """Builds `commutant._native` and installs the package so that the sources in `src` are what runs."""
    key = content_hash([*rust_sources(), ROOT / "pyproject.toml", THIS, INTERPRETER], toolchain.version)
    products = [COMMUTANT, *(ROOT / "src" / "commutant").glob("_native*.so")]
    if is_current("native", key, products) and len(products) > 1:
        return
    (ROOT / "target" / "wheel-data").mkdir(parents=True, exist_ok=True)  # what pyproject.toml names has to be there
    with timed("native module", "built and installed"):
        install_editable(ROOT)
    record("native", key)


def scalefs_package(toolchain: Toolchain) -> None:
    """The same for the package `scalefs` and its own native module."""
    manifests = files_below("packages/scalefs/pyproject.toml")
    key = content_hash([*rust_sources(), *manifests, THIS, INTERPRETER], toolchain.version)
    modules = [*(SCALEFS / "src" / "scalefs").glob("_native*.so")]
    if is_current("scalefs", key, modules) and modules:
        return
    (ROOT / "target" / "scalefs-wheel-data").mkdir(parents=True, exist_ok=True)  # as above
    with timed("package scalefs", "built and installed"):
        install_editable(SCALEFS)
    record("scalefs", key)


def install_editable(project: Path) -> None:
    """Builds a project's native module, and installs its package so that its sources are what runs."""
    pip: list[str | Path] = [PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = {"CARGO_NET_OFFLINE": "true"}
    run([*pip, "install", "--no-index", "--no-deps", "--no-build-isolation", "--editable", project], env=offline)


def kernel() -> None:
    """Downloads and unpacks Debian's kernel into the user's cache folder, once; it is not installed."""
    prepare: list[str | Path] = [PYTHON, "-m", "commutant.guest.prepare"]
    started = time.monotonic()
    try:
        prepared = run(prepare)
    except StepFailed as failure:
        say("kernel", str(failure).strip().splitlines()[0])
        refresh_package_lists()
        prepared = run(prepare)
    say_once("kernel", prepared, started)


def emulator_of_programs() -> None:
    """Fetches Debian 12's emulator of programs where the system's takes no plugins. Much works without one."""
    started = time.monotonic()
    try:
        found = run([PYTHON, "-m", "commutant.guest.prepare_emulator"])
    except StepFailed as failure:
        say("emulator of programs", str(failure).strip().splitlines()[0])
        say("emulator of programs", "without it `locks` and the targets scalefs, library and gallery do not run")
        return
    say_once("emulator of programs", found, started)


def say_once(name: str, found: str, started: float) -> None:
    """Says what is used and how long it took to have it, unless the setup before said the same."""
    stamp = name.replace(" ", "-")
    if not is_current(stamp, found):
        say(name, f"{found.strip()}: {time.monotonic() - started:.1f} s")
        record(stamp, found)


def main() -> int:
    """Runs all steps in order; returns the exit code."""
    started = time.monotonic()
    step = "setup"
    try:
        with (ROOT / "Makefile").open() as lock:  # two setups of one checkout take turns
            fcntl.flock(lock, fcntl.LOCK_EX)
            step = "emulator"  # what is not fit is said before minutes are spent on anything else
            judge_emulator()
            step = "system packages"
            fetch_missing_lists()
            step = "Rust toolchain"
            rust = packages_of_rust()
            step = "system packages"
            install_missing(rust)
            step = "emulator"
            judge_emulator()
            step = "Rust toolchain"
            toolchain = Toolchain.find()
            with ThreadPoolExecutor(1) as beside:  # packages mostly wait for the network, crates for the processors
                packages = beside.submit(virtual_environment)
                step = "Rust crates"
                crates(toolchain)
                step = "plugin and runner"
                artifacts(toolchain)
                step = "Python packages"
                packages.result()
            step = "pages"
            pages()
            step = "native module"
            native_module(toolchain)
            step = "package scalefs"
            scalefs_package(toolchain)
            step = "emulator of programs"
            emulator_of_programs()
            step = "kernel"
            kernel()
    except StepFailed as failure:
        print(f"{failure}\nsetup failed in step `{step}`", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}\nsetup failed in step `{step}`", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nsetup interrupted in step `{step}`; `make setup` goes on from there", file=sys.stderr)
        return 130
    say("setup", f"ready: {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
