"""Archives of anyone (tar), gone through once: nothing is read that was not looked at and paid for.

`tarfile` believes what an archive says of itself: a header may announce a name of a gigabyte, or a table of a sparse
file that never ends, and all of it is read into memory before anybody is asked. So `tarfile` reads from a stream that
hands out what was granted and no more: a little for the headers of the next member, and what the member holds once that
was looked at and paid for. Of `tarfile` only the public interface is used, so this holds on every version of Python.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress

FILE_LIMIT = 100_000
"""Files of an archive; linux-image has 5,000, and the largest package that a guest gets 20,000."""

HEADER_LIMIT_BYTES = 16 << 10
"""Headers of one member: two names of 4 KiB (PATH_MAX), and what stands around them. It also bounds the time that
`tarfile` takes to understand them: up to 3.12.5 that grows with the square of their length."""

_BLOCK_BYTES = 512
_READ_BYTES = 20 * _BLOCK_BYTES
"""What `tarfile` asks for at a time, which may reach beyond what it needs."""

_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE)
_KINDS = (*_PLAIN, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)


class ArchiveError(Exception):
    """Why an archive is not read any further: what it says of itself is beyond all bounds, or is not to be understood.

    `is_damaged` tells the second from the first.
    """

    def __init__(self, text: str, *, is_damaged: bool = False) -> None:
        super().__init__(text)
        self.is_damaged = is_damaged


class Archive:
    """The members of an archive, in order and once; a member's content can be read until the next is asked for."""

    def __init__(
        self, read: Callable[[int], bytes], spend: Callable[[int], None], *, extended_headers: bool = False
    ) -> None:
        """`read` gives the next bytes, at most as many as it is asked for, and none at the end; `spend` is called with
        each member's size before that is read, and raises if it is too much.

        A package of Debian's has no extended headers (pax; deb(5)), an archive of sources may.
        """
        self._stream = _Granted(read)
        self._spend = spend
        self._extended_headers = extended_headers
        self._archive: tarfile.TarFile | None = None

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        """Each member, if it is of a kind that packages hold. Raises ArchiveError, and what `spend` raises."""
        left = FILE_LIMIT
        while (member := self._next()) is not None:
            left -= 1
            if left < 0:
                raise ArchiveError(f"more than {FILE_LIMIT:,} files")
            self._check(member)
            self._spend(member.size)
            content = -(-member.size // _BLOCK_BYTES) * _BLOCK_BYTES
            self._stream.grant(member.offset_data + content)
            yield member
        if left == FILE_LIMIT:
            # Python 3.13 takes a first header that it does not understand as the end.
            raise ArchiveError("holds no file", is_damaged=True)

    def _next(self) -> tarfile.TarInfo | None:
        try:
            if self._archive is None:
                self._archive = tarfile.open(fileobj=self._stream, mode="r|", bufsize=_READ_BYTES)  # noqa: SIM115
            return self._archive.next()
        except _UNDERSTOOD as error:
            raise ArchiveError(str(error), is_damaged=True) from None

    def _check(self, member: tarfile.TarInfo) -> None:
        assert self._archive is not None
        is_extended = bool(member.pax_headers or self._archive.pax_headers) and not self._extended_headers
        if member.type not in _KINDS or member.issparse() or is_extended:
            raise ArchiveError(f"{member.name[:60]!r} is of a kind that no package holds")
        if member.size < 0:
            raise ArchiveError(f"{member.name[:60]!r} has {member.size} bytes")

    def read(self, member: tarfile.TarInfo) -> bytes:
        """The content of the regular file that was given last. Raises ArchiveError if it is cut off."""
        assert member.isreg(), member.name
        assert self._archive is not None
        content = b""
        with suppress(*_UNDERSTOOD):
            if file := self._archive.extractfile(member):
                content = file.read()
        if len(content) != member.size:
            raise ArchiveError(f"{member.name[:60]!r} is cut off", is_damaged=True)
        return content


_UNDERSTOOD = (tarfile.TarError, EOFError, ValueError, ArithmeticError, LookupError, RecursionError)
"""What `tarfile` may raise for headers that cannot be understood; of these only the first is documented."""


class _Granted(io.RawIOBase):
    """The stream beneath `tarfile`: up to the place that was granted, and to what the next headers may take."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        super().__init__()
        self._read = read
        self._place = 0
        self._end = 0
        self.grant(0)

    def grant(self, place: int) -> None:
        """Allows what lies before a place, and the headers after it."""
        self._end = place + HEADER_LIMIT_BYTES + _READ_BYTES

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes; raises ArchiveError beyond what was granted."""
        granted = min(size, self._end - self._place)
        if granted <= 0:
            raise ArchiveError(f"headers of more than {HEADER_LIMIT_BYTES:,} bytes")
        data = self._read(granted)
        self._place += len(data)
        return data
