"""The documents of `kernel build` and `kernel list`, declared once."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from commutant.documents import Count, Document, Measure, Part
from commutant.guest import KernelBuild


class BaseEntry(Part, frozen=True):
    """What the kernel without patches cost, when it was built."""

    compiled: Count
    cpu_seconds: Measure


class KernelDocument(Document, frozen=True):
    """A kernel that was built; `build` also stands in kernel.json, and in run.json as kernel_build."""

    name: Annotated[str, Meta(description="For --target linux:kernel=NAME.")]
    kernel: Annotated[str, Meta(description="The release, as of uname -r.")]
    kernel_sha256: str
    path: Annotated[str, Meta(description="The vmlinux.")]
    build: KernelBuild | None
    base: BaseEntry
    seconds: Measure
    changed_by_patch: tuple[str, ...]


class KeptKernelEntry(Part, frozen=True):
    """A kernel in the cache folder; its release is null if it is damaged, and `patches` are titles."""

    names: tuple[str, ...]
    folder: str
    kernel: str | None
    patches: tuple[str, ...]
    size_bytes: Count


class KeptBuildEntry(Part, frozen=True):
    """What builds keep of a base for the next patch: sources and objects."""

    path: str
    source: str
    version: str


class KernelListDocument(Document, frozen=True):
    """The kernels that are kept, and what builds keep."""

    kernels: tuple[KeptKernelEntry, ...]
    builds: tuple[KeptBuildEntry, ...]
