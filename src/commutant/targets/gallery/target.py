"""An entry of the gallery as a target: the target `library` with an adapter that is built when the target is asked."""

from __future__ import annotations

from collections.abc import Mapping

from commutant.support import UsageError
from commutant.targets.base import Target
from commutant.targets.gallery.build import built
from commutant.targets.gallery.entries import ENTRIES, Entry, version_of
from commutant.targets.library import LibraryTarget, Options, parse_options
from commutant.targets.registry import NAMED


def create(argument: str, options: Mapping[str, str]) -> Target:
    """The target for `gallery:NAME[,cores=N][,seed=N][,allocator=...]`; builds its adapter. Raises UsageError."""
    rest = dict(options)
    name = rest.pop(NAMED, "")
    if name not in ENTRIES:
        raise UsageError(f"target {argument!r}: expected gallery:NAME with one of {', '.join(ENTRIES)}")
    if "path" in rest:
        raise UsageError(f"target {argument!r}: an entry of the gallery has its adapter; expected no path")
    entry = ENTRIES[name]
    return GalleryTarget(argument, parse_options(argument, {**rest, "path": str(built(entry))}), entry)


class GalleryTarget(LibraryTarget):
    """A library of the gallery."""

    def __init__(self, argument: str, options: Options, entry: Entry) -> None:
        super().__init__(argument, options)
        self.entry = entry

    def _with(self, options: Options) -> GalleryTarget:
        return GalleryTarget(self.argument, options, self.entry)

    def describe(self) -> Mapping[str, object]:
        """Of a library, with the entry's name and version; where the adapter lies is this machine's affair."""
        described = {key: value for key, value in super().describe().items() if key != "adapter"}
        return {"entry": self.entry.name, "version": version_of(self.entry), **described}
