"""`commutant kernel`: builds kernels with patches, lists those that are kept, and forgets them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options
from commutant.support import CommutantError, Progress, RunError, UsageError, plural, safe_text

if TYPE_CHECKING:
    from commutant.guest import Kept, Kernel
    from commutant.kernels import BuiltKernel, KeptKernelEntry, KernelDocument

_DIFFERENCES_SHOWN = 8
_MIB = 1 << 20


@click.group(
    "kernel",
    short_help="Build kernels with patches for `linux:kernel=NAME`; list and forget them.",
    epilog=options.examples("commutant kernel build --source debian --patch own.patch", "commutant kernel list"),
)
def command() -> None:
    """Builds small kernels for the target `linux`, from sources and patches, and keeps them by name."""


@command.command(
    "build",
    short_help="Build a kernel from sources and patches.",
    epilog=options.examples(
        "commutant kernel build --source debian",
        "commutant kernel build --source debian --patch cred-check-first.patch",
        "commutant kernel build --source ~/linux --reference linux-image-6.12-amd64 --name mine",
    ),
)
@click.option(
    "--source", metavar="DIR|debian", required=True, help="A source tree, or Debian's of the reference kernel."
)
@click.option(
    "--patch",
    "patches",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    multiple=True,
    help="A patch to apply; several in this order.",
)
@click.option("--name", metavar="NAME", help="Keep it under this name.  [default: of version and patches]")
@click.option("--reference", metavar="KERNEL", help="The kernel whose types are to be met.  [default: that of `linux`]")
@click.option(
    "--config", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Trim this configuration."
)
@click.option("--as-is", is_flag=True, help="Do not trim the configuration of --config.")
@click.option(
    "--run",
    "run_path",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUN",
    help="Compare the types in the findings of this run.",
)
@click.option("--whole", is_flag=True, help="Compile all that includes a changed header, not its users alone.")
@click.option("--no-boot", is_flag=True, help="Do not start it once to see that it boots.")
@options.jobs
@options.output_format("text", "json")
def build(
    source: str,
    patches: tuple[Path, ...],
    name: str | None,
    reference: str | None,
    config: Path | None,
    as_is: bool,
    run_path: Path | None,
    whole: bool,
    no_boot: bool,
    jobs: int,
    format_: str,
) -> int:
    """Builds a kernel and prints its name for `--target linux:kernel=NAME`.

    Configured as the reference kernel is, without what only real machines need; types that tests share stay as they
    are, which is compared. The first build of a source takes some 15 minutes of a processor, one with a patch of few
    files half a minute. What was interrupted goes on where it was.
    """
    from commutant.guest import default_kernel, is_package_name, kernel_of, unpack
    from commutant.kernels import (
        SHARED_TYPES,
        build_kernel,
        config_of,
        find_source,
        read_config,
        read_patch,
        refuse_other_version,
        require_tools,
        trimmed,
    )

    if name is not None and not is_package_name(name):
        raise UsageError(f"--name {name!r:.80}: expected two or more lower-case letters, digits, +, - and dots")
    if as_is and config is None:
        raise click.UsageError("--as-is is about the configuration that --config gives")
    read = [read_patch(path) for path in patches]
    types = SHARED_TYPES if run_path is None else _types_in(run_path)
    require_tools()
    given = default_kernel() if reference is None else kernel_of(reference)
    standard = unpack(given) if isinstance(given, Path) else given
    with console.ProgressBar("building") as bar:
        found = find_source(source, standard, bar)
        if other := refuse_other_version(found, standard):
            console.message(other)
        text = config_of(standard) if config is None else read_config(config)
        built = build_kernel(
            found,
            text if as_is else trimmed(text),
            read,
            standard,
            types,
            jobs,
            bar,
            console.message,
            name=name,
            whole=whole,
        )
        if not no_boot:
            bar(Progress(text="starting it"))
            try_start(built.name)
    if format_ == "json":
        console.write_document(_document(built))
        return 0
    _say(built)
    console.write(f"linux:kernel={built.name}\n")
    return 0


def try_start(name: str) -> None:
    """Starts a kernel once, which makes the snapshot that a check begins with; one that does not start is forgotten.

    Raises RunError then.
    """
    from commutant.guest import forget
    from commutant.targets import load_target

    target = load_target(f"linux:kernel={name}")
    try:
        target.start(lambda _text: None, 2)
    except CommutantError as error:
        forget([name])
        raise RunError(f"{name} was built and does not start: {error}; it is not kept") from None
    finally:
        target.close()


def _say(built: BuiltKernel) -> None:
    base = built.base
    console.message(
        f"base: Linux {base.version}, {plural(base.compiled, 'file')} compiled in {base.cpu_seconds / 60:.1f} min of a "
        "processor"
    )
    if built.made.compiled:
        console.message(
            f"patched: {plural(built.made.compiled, 'file')} in {built.made.cpu_seconds:.0f} s of a processor"
        )
    same = built.compared - len(built.differences)
    console.message(f"types as in {built.reference}: {same} of {built.compared}")
    for one in built.differences[:_DIFFERENCES_SHOWN]:
        console.message(f"  {one}")
    for one in built.changes:
        console.message(f"changed by the patch: {one}")


def _document(built: BuiltKernel) -> KernelDocument:
    """The document."""
    from commutant.kernels import BaseEntry, KernelDocument

    return KernelDocument(
        name=built.name,
        kernel=built.kernel.release,
        kernel_sha256=built.kernel.sha256,
        path=str(built.kernel.vmlinux),
        build=built.kernel.built,
        base=BaseEntry(built.base.compiled, built.base.cpu_seconds),
        seconds=round(built.seconds, 1),
        changed_by_patch=tuple(str(one) for one in built.changes),
    )


def _types_in(path: Path) -> tuple[str, ...]:
    """The structures in the findings of a run."""
    from commutant.runs import load_run

    objects = {one.object for verdict in load_run(path).verdicts() for one in verdict.findings}
    names = {word for text in objects for word in _structures(text)}
    if not names:
        raise UsageError(f"{path}: no finding of the run is in a structure; expected a run of the target linux")
    return tuple(sorted(names))


def _structures(text: str) -> list[str]:
    words = text.replace("|", " ").split()
    return [words[at + 1].partition(".")[0] for at in range(len(words) - 1) if words[at] == "struct"]


@command.command("list", short_help="The kernels that are kept.")
@options.output_format("text", "json")
def list_(format_: str) -> int:
    """Lists the kernels in the cache folder, with the patches that they were built with, and what builds take."""
    from commutant.guest import kept_kernels
    from commutant.kernels import KeptBuildEntry, KernelListDocument, builds_folder, read_base

    kept = list(kept_kernels())
    bases = [base for path in sorted(builds_folder().glob("*")) if (base := read_base(path))]
    if format_ == "json":
        console.write_document(
            KernelListDocument(
                kernels=tuple(map(_kept_entry, kept)),
                builds=tuple(KeptBuildEntry(str(base.folder), base.source, base.version) for base in bases),
            )
        )
        return 0
    for one in kept:
        names = ", ".join(one.names) or one.folder.name
        release = one.kernel.release if one.kernel else "damaged"
        text = f"{names}  Linux {release}, {one.size_bytes / _MIB:.0f} MiB"
        console.write(safe_text(text) + "\n")
        for title in _titles(one.kernel):
            console.write(f"  {safe_text(title)}\n")
    for base in bases:
        console.write(safe_text(f"base  {base.source}, Linux {base.version}, in {base.folder}") + "\n")
    return 0


def _titles(kernel: Kernel | None) -> tuple[str, ...]:
    return tuple(one.title for one in kernel.built.patches) if kernel and kernel.built else ()


def _kept_entry(one: Kept) -> KeptKernelEntry:
    from commutant.kernels import KeptKernelEntry

    release = one.kernel.release if one.kernel else None
    return KeptKernelEntry(tuple(one.names), str(one.folder), release, _titles(one.kernel), one.size_bytes)


@command.command(
    "forget",
    short_help="Remove kept kernels.",
    epilog=options.examples("commutant kernel forget 6.1.192-base-0f3a21", "commutant kernel forget --builds"),
)
@click.argument("name", nargs=-1)
@click.option("--unnamed", is_flag=True, help="Also kernels that were given by a path.")
@click.option("--builds", is_flag=True, help="Also what builds keep for the next patch: sources and objects.")
def forget_(name: tuple[str, ...], unnamed: bool, builds: bool) -> int:
    """Removes kernels from the cache folder; runs that were made with them stay as they are."""
    from commutant.guest import forget, kept_kernels
    from commutant.kernels import builds_folder, forget_builds

    if not name and not unnamed and not builds:
        raise click.UsageError("expected a NAME that `commutant kernel list` shows, --unnamed or --builds")
    wanted = [*name, *(one.folder.name for one in kept_kernels() if unnamed and not one.names)]
    for one in forget(dict.fromkeys(wanted)):
        console.message(f"forgotten: {', '.join(one.names) or one.folder.name}, {one.size_bytes / _MIB:.0f} MiB")
    if builds:
        console.message(f"builds forgotten: {forget_builds(builds_folder()) / _MIB:,.0f} MiB")
    return 0
