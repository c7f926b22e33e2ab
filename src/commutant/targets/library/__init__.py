"""The target `library`: any library, behind an adapter that its user writes (docs/guides/libraries.md).

`options` reads the target argument, `adapter` looks at the adapter's file before anything loads it, `target` runs it;
`project` writes new adapters.
"""

from commutant.targets.library.options import OPTIONS, Options, parse_options
from commutant.targets.library.project import LANGUAGES, new_project
from commutant.targets.library.target import INCLUDE, RUST_CRATE, LibraryTarget, create

__all__ = [
    "INCLUDE",
    "LANGUAGES",
    "OPTIONS",
    "RUST_CRATE",
    "LibraryTarget",
    "Options",
    "create",
    "new_project",
    "parse_options",
]
