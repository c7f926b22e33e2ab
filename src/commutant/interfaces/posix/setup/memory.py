"""Set-up of mapped pages. Anonymous ones come from mmap itself; a file is mapped whether or not it has a descriptor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from commutant.interfaces.posix.operations import FileOperations
from commutant.interfaces.posix.state import Address, Flag, Inum, MappedPage, Number, Page
from commutant.lang import Invocation, Process, invoke, setup_call


class MemorySetup(FileOperations):
    """The call that maps files, and memory as a sequence of calls."""

    @setup_call
    def map_file(
        self,
        process: Process,
        address: Address,
        file: Number,
        page: Page,
        shared: bool,
        writable: Flag,
        may_write: Flag,
    ) -> None:
        """Maps a page of the file at this address; `may_write` tells whether it was open for writing."""
        self.memory[process, address] = MappedPage(
            anonymous=False,
            shared=shared,
            copied=False,
            writable=writable,
            may_write=may_write,
            inum=self._files[file],
            page=page,
            own=self.zero,
        )

    def map_pages(self, numbers: Mapping[Inum, int]) -> Iterator[Invocation]:
        """Maps the pages of this state; files have these numbers."""
        for (process, address), mapping in self.memory.items():
            filled = mapping.own != self.zero if mapping.anonymous else mapping.copied and not mapping.shared
            place = {"process": process, "address": address}
            if mapping.anonymous:
                yield invoke(
                    "mmap",
                    **place,
                    fixed=True,
                    anonymous=True,
                    shared=False,
                    writable=mapping.writable or filled,
                    fd=0,
                    page=0,
                )
            else:
                yield invoke(
                    "map_file",
                    **place,
                    file=numbers[mapping.inum],
                    page=mapping.page,
                    shared=mapping.shared,
                    writable=mapping.writable or filled,
                    may_write=mapping.may_write,
                )
            if filled:
                yield invoke("memwrite", **place, data=mapping.own)
                if not mapping.writable:
                    yield invoke("mprotect", **place, writable=False)
