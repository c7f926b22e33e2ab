"""Archives that say of themselves what no one should believe, each read by whichever Python runs this file.

    python tests/targets/hostile_archives.py src/commutant/guest/tar.py

loads that module alone, which needs nothing but Python, and prints what became of each archive, as JSON: the error's
text, how many bytes were read (most have no end), and the sizes of the files that were given.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

ZEROS = bytes(1 << 16)
GRANTED_BYTES = 1 << 20
"""What the reader may spend on members in all."""


def header(name: str, kind: bytes, size: int) -> bytes:
    """The header of a member."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def summed(block: bytes) -> bytes:
    """A header whose checksum is right again after a change."""
    body = block[:148] + b" " * 8 + block[156:]
    return body[:148] + b"%06o\0 " % sum(body) + body[156:]


def negative(size: int) -> bytes:
    """A file whose size is below zero, as a number to the base of 256 may be."""
    block = header("x", tarfile.REGTYPE, 0)
    return summed(block[:124] + size.to_bytes(12, "big", signed=True) + block[136:])


def record(text: str) -> bytes:
    """A record of an extended header."""
    length = len(text) + 3
    while len(f"{length} {text}\n") != length:
        length += 1
    return f"{length} {text}\n".encode()


def extended(kind: bytes, *texts: str) -> bytes:
    """An extended header of a few records, and the file after it."""
    body = b"".join(map(record, texts))
    return header("x", kind, len(body)) + body.ljust(512, b"\0") + header("y", tarfile.REGTYPE, 0)


def repeated(*blocks: bytes) -> Iterator[bytes]:
    """The blocks, the last of them without end."""
    yield from blocks[:-1]
    yield from itertools.repeat(blocks[-1])


def sparse_table() -> Iterator[bytes]:
    """A sparse file of the old form, whose table says in each block that another follows."""
    first = header("x", tarfile.GNUTYPE_SPARSE, 0)
    yield summed(first[:482] + b"\x01" + first[483:])
    yield from itertools.repeat((b"%011o\0" % 512 * 42)[:504] + b"\x01" + bytes(7))


def long_name(size: int) -> bytes:
    """The header of a name of that many bytes."""
    return header("././@LongLink", tarfile.GNUTYPE_LONGNAME, size)


def good() -> Iterator[bytes]:
    """What a package holds: folders, files, links, and names that are long."""
    for name, kind, size in (
        ("./usr/", tarfile.DIRTYPE, 0),
        ("./usr/a", tarfile.REGTYPE, 100_000),
        ("./usr/" + 2000 * "l", tarfile.REGTYPE, 513),
        ("./usr/b", tarfile.SYMTYPE, 0),
        ("./usr/c", tarfile.REGTYPE, 0),
        ("./usr/d", tarfile.REGTYPE, 512),
    ):
        yield header(name, kind, size) + bytes(-(-size // 512) * 512)
    yield ZEROS


ARCHIVES: dict[str, Callable[[], Iterator[bytes]]] = {
    "good": good,
    "a name of a gigabyte": lambda: repeated(long_name(1 << 30), ZEROS),
    "a link of a gigabyte": lambda: repeated(header("x", tarfile.GNUTYPE_LONGLINK, 1 << 30), b"x" * 65536),
    "names of names": lambda: repeated(long_name(1) + b"x".ljust(512, b"\0")),
    "an extended header of a gigabyte": lambda: repeated(header("x", tarfile.XHDTYPE, 1 << 30), b"1" * 65536),
    "a global header of a gigabyte": lambda: repeated(header("x", tarfile.XGLTYPE, 1 << 30), b"1" * 65536),
    "Solaris' header of a gigabyte": lambda: repeated(header("x", tarfile.SOLARIS_XHDTYPE, 1 << 30), b"1" * 65536),
    "an extended header": lambda: repeated(extended(tarfile.XHDTYPE, "path=z"), ZEROS),
    "a global header": lambda: repeated(extended(tarfile.XGLTYPE, "comment=z"), ZEROS),
    "a size in an extended header": lambda: repeated(extended(tarfile.XHDTYPE, "size=-512"), ZEROS),
    "sparse by an extended header": lambda: repeated(
        extended(tarfile.XHDTYPE, "GNU.sparse.map=0,1", "GNU.sparse.size=1099511627776"), ZEROS
    ),
    "a sparse file": lambda: repeated(header("x", tarfile.GNUTYPE_SPARSE, 100), ZEROS),
    "a table of a sparse file without end": sparse_table,
    "a kind that is not known": lambda: repeated(header("x", b"Q", 1 << 40), ZEROS),
    "a file of a terabyte": lambda: repeated(header("x", tarfile.REGTYPE, 1 << 40), ZEROS),
    "a file of fewer than no bytes": lambda: repeated(negative(-512), ZEROS),
    "a file of far fewer than no bytes": lambda: repeated(negative(-(1 << 60)), ZEROS),
    "files without end": lambda: repeated(header("x", tarfile.REGTYPE, 0)),
    "a file that is cut off": lambda: iter([header("x", tarfile.REGTYPE, 1000), b"x"]),
    "a header that is cut off": lambda: iter([header("x", tarfile.REGTYPE, 0)[:100]]),
    "no archive": lambda: repeated(b"no archive " * 100),
    "nothing": lambda: iter([]),
}


class Spent(Exception):
    """More than was granted."""


def outcome(archive: Any, parts: Iterator[bytes]) -> dict[str, Any]:
    """What becomes of an archive: the error, the bytes that were read, and the sizes of its files."""
    read_bytes, left, waiting = 0, GRANTED_BYTES, b""

    def read(size: int) -> bytes:
        nonlocal waiting, read_bytes
        while not waiting:
            part = next(parts, None)
            if part is None:
                return b""
            waiting = part
        piece, waiting = waiting[:size], waiting[size:]
        read_bytes += len(piece)
        return piece

    def spend(size: int) -> None:
        nonlocal left
        left -= size
        if left < 0:
            raise Spent(f"{size} bytes are too many")

    contents, error = {}, ""
    opened = archive.Archive(read, spend)
    try:
        for member in opened:
            contents[member.name] = len(opened.read(member)) if member.isfile() else -1
    except (archive.ArchiveError, Spent) as found:
        error = str(found) or "damaged"
    return {"error": error, "read_bytes": read_bytes, "contents": contents}


def main(path: str) -> None:
    """Reads all archives by the module at a path."""
    spec = importlib.util.spec_from_file_location("archive_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    print(json.dumps({name: outcome(module, make()) for name, make in ARCHIVES.items()}))


if __name__ == "__main__":
    main(sys.argv[1])
