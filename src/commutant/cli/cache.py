"""`commutant cache`: what lies in the user's cache folder, and what to remove of it."""

from __future__ import annotations

import click

from commutant.cli import console, options
from commutant.documents import Count, Document, Part


class KindSize(Part, frozen=True):
    """What is left of a kind."""

    bytes: Count
    entries: Count


class CacheDocument(Document, frozen=True):
    """What lies in the cache folder, by kind, after this call removed this many bytes."""

    folder: str
    removed_bytes: Count
    kinds: dict[str, KindSize]


@click.command(
    "cache",
    short_help="What the cache folder holds; remove what is old.",
    epilog=options.examples(
        "commutant cache",
        "commutant cache --older-than 30",
        "commutant cache --remove snapshots --remove results",
        "commutant cache --remove all",
    ),
)
@click.option("--remove", multiple=True, metavar="KIND|all", help="Remove everything of this kind.")
@click.option("--older-than", type=click.IntRange(1), metavar="DAYS", help="Remove what was not used for so long.")
@options.output_format("text", "json")
def command(remove: tuple[str, ...], older_than: int | None, format_: str) -> int:
    """Lists what Commutant keeps between runs, by kind, with its size; nothing is removed unless asked for.

    All of it is made again when it is needed; kernels and packages are downloaded again.
    """
    from commutant.support import CacheFolder, plural

    folder = CacheFolder()
    removed = folder.remove(remove) if remove else 0
    if older_than is not None:
        removed += folder.remove_older(older_than)
    kinds = folder.kinds()
    if format_ == "json":
        sizes = {kind.name: KindSize(kind.size_bytes, kind.entries) for kind in kinds}
        console.write_document(CacheDocument(str(folder.path), removed, sizes))
        return 0
    console.write(f"{console.one_line(str(folder.path))}\n")
    for kind in kinds:
        entries = plural(kind.entries, "entry", "entries")
        console.write(f"{kind.size_bytes / (1 << 20):10,.1f} MiB  {kind.name:<12} {entries}: {kind.meaning}\n")
    if remove or older_than is not None:
        console.write(f"removed: {removed / (1 << 20):,.1f} MiB\n")
    return 0
