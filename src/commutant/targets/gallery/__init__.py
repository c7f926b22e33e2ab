"""The target `gallery`: libraries that many use, each behind an adapter of ours (docs/gallery).

`entries` lists them, `build` makes an adapter from a published crate or a package of Debian, and the target is then one
of `library`. None of their code is shipped: it is fetched when an entry is asked for.
"""

from commutant.targets.gallery.build import built
from commutant.targets.gallery.entries import ENTRIES, Entry, installed_version, version_of
from commutant.targets.gallery.target import create

__all__ = ["ENTRIES", "Entry", "built", "create", "installed_version", "version_of"]
