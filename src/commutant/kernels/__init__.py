"""Kernels of one's own for the target `linux`: built from sources with patches, small, with the types of Debian's.

`source` finds the sources, `recipe` the configuration, `build` makes a base once and patched kernels from copies of it
(`make` runs the kernel's own build, `users` with `headers` says what of it a patch concerns), `layouts` and `overlay`
compare and join types, `product` puts all that together.
"""

from commutant.kernels.build import Base, builds_folder, read_base
from commutant.kernels.document import (
    BaseEntry,
    KeptBuildEntry,
    KeptKernelEntry,
    KernelDocument,
    KernelListDocument,
)
from commutant.kernels.patches import Patch, read_patch
from commutant.kernels.product import SHARED_TYPES, BuiltKernel, build_kernel, forget_builds, refuse_other_version
from commutant.kernels.recipe import config_of, read_config, trimmed
from commutant.kernels.source import DEBIAN, find_source
from commutant.kernels.tools import require_tools

__all__ = [
    "DEBIAN",
    "SHARED_TYPES",
    "Base",
    "BaseEntry",
    "BuiltKernel",
    "KeptBuildEntry",
    "KeptKernelEntry",
    "KernelDocument",
    "KernelListDocument",
    "Patch",
    "build_kernel",
    "builds_folder",
    "config_of",
    "find_source",
    "forget_builds",
    "read_base",
    "read_config",
    "read_patch",
    "refuse_other_version",
    "require_tools",
    "trimmed",
]
