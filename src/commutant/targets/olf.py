"""The target `olf`: lists and maps of crate `olf` (docs/reference/olf.md), behind adapters that come with the package.

It is the target `library` with one of three adapters in one file: `olf:kind=map` (the default) or `olf:kind=sorted` for
the interface `lists`, `olf:kind=list` for `lists-ends`.
"""

from __future__ import annotations

from collections.abc import Mapping

from commutant.support import artifacts
from commutant.targets.base import Target
from commutant.targets.counted import COUNTED_OPTIONS, take_counted
from commutant.targets.library import OPTIONS as OF_LIBRARIES
from commutant.targets.library import LibraryTarget, Options
from commutant.targets.options import Option, one_of, read_options

_KIND = "kind"
_KINDS = ("map", "sorted", "list")
_OF_THE_PACKAGE = ("adapter", "adapter_name")
"""What a description of a library says, and this target's need not: the file is the package's."""

OPTIONS: Mapping[str, Option] = {
    _KIND: one_of(*_KINDS),
    **{key: option for key, option in OF_LIBRARIES.items() if key not in ("path", "name")},
}


def create(argument: str, options: Mapping[str, str]) -> Target:
    """The target for `olf[:kind=map|sorted|list][,cores=N][,allocator=...]`, not started; raises UsageError."""
    given, counted = take_counted(argument, options)
    read = read_options(argument, given, OPTIONS, *COUNTED_OPTIONS)
    kind = read.pop(_KIND, _KINDS[0])
    return OlfTarget(argument, Options(artifacts.olf_adapters_path(), counted=counted, name=kind, **read), kind)


class OlfTarget(LibraryTarget):
    """Lists or maps of crate `olf`."""

    def __init__(self, argument: str, options: Options, kind: str) -> None:
        super().__init__(argument, options)
        self.kind = kind

    @property
    def folder_name(self) -> str:
        """What a run's folder is called after."""
        return self.argument.replace(":", "-")

    def _with(self, options: Options) -> OlfTarget:
        return OlfTarget(self.argument, options, self.kind)

    def describe(self) -> Mapping[str, object]:
        """Of a library, with the kind of lists; where the adapter lies is this machine's affair."""
        described = {key: value for key, value in super().describe().items() if key not in _OF_THE_PACKAGE}
        return {"kind": self.kind, **described}
