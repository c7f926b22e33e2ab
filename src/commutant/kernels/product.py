"""`build_kernel`: from sources and patches to a kernel that targets can start, with what it was made of."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commutant.guest import Kernel, KernelBuild, KernelPatch, keep_built
from commutant.kernels.build import Base, build_base, patched
from commutant.kernels.layouts import Difference, differences, read_types
from commutant.kernels.make import Made
from commutant.kernels.overlay import overlay
from commutant.kernels.patches import Patch
from commutant.kernels.source import Source, debian_version
from commutant.kernels.tools import toolchain
from commutant.kernels.users import Scope, encode
from commutant.support import OnProgress, RunError, UsageError

SHARED_TYPES = (
    "address_space",
    "anon_vma",
    "anon_vma_chain",
    "cred",
    "dentry",
    "fdtable",
    "file",
    "files_struct",
    "fs_struct",
    "inode",
    "kmem_cache",
    "lruvec",
    "maple_node",
    "mem_cgroup_per_node",
    "mm_struct",
    "mount",
    "page",
    "pglist_data",
    "pipe_buffer",
    "pipe_inode_info",
    "rq",
    "shmem_inode_info",
    "shmem_sb_info",
    "sighand_struct",
    "signal_struct",
    "slab",
    "super_block",
    "task_struct",
    "tlb_state",
    "ucounts",
    "user_struct",
    "vm_area_struct",
    "xa_node",
    "zone",
)
"""Types that tests of files, pipes and memory share; compared with the reference kernel's where no run is given."""

_NAME_PART = re.compile(r"[^a-z0-9]+")
_NAME_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """A kernel that was built: its name for `linux:kernel=NAME`, and how its types differ from those of the reference
    kernel (`differences`) and, with patches, from the base's (`changes`). `compared` counts the types looked at."""

    name: str
    kernel: Kernel
    base: Base
    made: Made
    seconds: float
    compared: int
    differences: Sequence[Difference]
    changes: Sequence[Difference]

    @property
    def reference(self) -> str:
        """The release of the kernel whose types were to be met."""
        return self.kernel.built.reference if self.kernel.built else ""


def refuse_other_version(source: Source, reference: Kernel) -> str | None:
    """None if sources are of the reference kernel's version, or a line if only the last number differs.

    Raises UsageError if they are of another series: then nearly every type differs, and a comparison says nothing.
    """
    known = debian_version(reference)
    version = known[0] if known else reference.release
    if source.version == version:
        return None
    if source.version.split(".")[:2] != version.split(".")[:2]:
        raise UsageError(
            f"{source.name} is Linux {source.version}, the reference kernel {version}: expected the same series; "
            "--reference takes another kernel, such as linux-image-6.12-amd64"
        )
    return f"{source.name} is Linux {source.version}, the reference kernel {version}; types may differ by that"


def build_kernel(
    source: Source,
    config: str,
    patches: Sequence[Patch],
    reference: Kernel,
    types: Collection[str],
    jobs: int,
    on_progress: OnProgress,
    tell: Callable[[str], None],
    *,
    name: str | None = None,
    whole: bool = False,
) -> BuiltKernel:
    """Builds the base if it is not there, then the patched kernel, and keeps it under a name.

    `whole` compiles all that includes a changed header. Raises UsageError for a patch that does not apply or compile,
    RunError for a build that fails otherwise.
    """
    compiler = toolchain()
    base = build_base(source, config, compiler, jobs, on_progress)
    started = time.monotonic()
    standard = read_types(reference.read_types())
    plain = read_types(_section(base.vmlinux, base.folder))
    trimmed = differences(standard, plain, types)
    name = name or _name(base, patches)
    facts: dict[str, Any] = {
        "source": source.name,
        "source_sha256": source.digest,
        "version": source.version,
        "reference": reference.release,
        "config_sha256": base.config_sha256,
        "compiler": compiler,
        "patches": tuple(KernelPatch(title=one.title, sha256=one.sha256, text=one.text) for one in patches),
        "types_compared": len(types),
        "types_that_differ": tuple(str(one) for one in trimmed),
    }
    if not patches:
        kernel = _keep(base.vmlinux, base.folder, name, facts, None)
        return BuiltKernel(name, kernel, base, Made(0, 0.0), time.monotonic() - started, len(types), trimmed, ())
    with patched(base, patches, jobs, on_progress, whole=whole, tell=tell) as (tree, made, scope):
        newer = _types_of(tree, base, patches, scope)
        after = read_types(newer if newer is not None else _section(tree / "build" / "vmlinux", tree.parent))
        facts |= {"compiled": made.compiled, "cpu_seconds": round(made.cpu_seconds, 1), "scope": scope.text}
        kernel = _keep(tree / "build" / "vmlinux", tree.parent, name, facts, newer)
    changes = differences(plain, after, {*types, *scope.types})
    return BuiltKernel(name, kernel, base, made, time.monotonic() - started, len(types), trimmed, changes)


def _types_of(tree: Path, base: Base, patches: Sequence[Patch], scope: Scope) -> bytes | None:
    """The types of a kernel of which only users were compiled: the base's, with theirs over them."""
    if scope.users is None or not scope.types:
        return None
    sources = {*scope.users, *(file for patch in patches for file in patch.files if file.endswith(".c"))}
    objects = [tree / "build" / Path(source).with_suffix(".o") for source in sorted(sources)]
    there = [str(path) for path in objects if path.is_file()]
    together = tree.parent / "fresh.o"
    _run(["ld", "-r", "-o", str(together), *there])
    older = tree.parent / "base.btf"
    older.write_bytes(_section(base.vmlinux, tree.parent))
    newer = encode(together, tree.parent / "fresh.btf", older)
    return overlay(older.read_bytes(), newer)


def _section(vmlinux: Path, folder: Path) -> bytes:
    """The types in a vmlinux, which with its debug information may be larger than one reads at once."""
    out = folder / "section.btf"
    _run(["objcopy", "--dump-section", f".BTF={out}", str(vmlinux), "/dev/null"])
    if not out.is_file():
        raise RunError(f"{vmlinux}: no types inside; expected a configuration with CONFIG_DEBUG_INFO_BTF")
    data = out.read_bytes()
    out.unlink()
    return data


def _keep(vmlinux: Path, folder: Path, name: str, facts: dict[str, Any], types: bytes | None) -> Kernel:
    """Keeps a vmlinux without its debug information, which is four fifths of it."""
    small = folder / "vmlinux.small"
    _run(["objcopy", "--strip-debug", str(vmlinux), str(small)])
    kernel = keep_built(small, name, KernelBuild(**facts), types)
    small.unlink()
    return kernel


def _run(command: Sequence[str]) -> None:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RunError(f"{command[0]}: {error.strerror}") from None
    if answer.returncode != 0:
        raise RunError(f"{command[0]}: {' '.join(answer.stderr.split())[-300:]}")


def _name(base: Base, patches: Sequence[Patch]) -> str:
    """A name that tells version and patches, and differs where they or the base do."""
    digest = hashlib.sha256("\0".join([base.folder.name, *(one.sha256 for one in patches)]).encode()).hexdigest()[:6]
    words = "-".join(_NAME_PART.sub("-", one.path.stem.lower()).strip("-") for one in patches) or "base"
    return f"{base.version.lower()}-{words[:_NAME_CHARACTERS].strip('-')}-{digest}"


def forget_builds(folder: Path) -> int:
    """Removes all builds with their sources and objects, and says how many bytes that were; kernels stay."""
    if not folder.is_dir():
        return 0
    size = sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise RunError(f"{error.filename}: {error.strerror}") from None
    return size
