"""Calls on memory, one page each: mmap, munmap, mprotect, and the loads and stores memread and memwrite."""

from __future__ import annotations

from commutant.interfaces.posix.operations import FileOperations
from commutant.interfaces.posix.state import Address, Data, Flag, MappedPage, Number, Page
from commutant.lang import Errno, Process, Signal, call, choose, now, unused


class MemoryCalls(FileOperations):
    """The calls on the caller's address space."""

    @call
    def mmap(
        self,
        process: Process,
        fixed: bool,
        address: Address,
        anonymous: bool,
        shared: bool,
        writable: Flag,
        fd: Number,
        page: Page,
    ) -> Errno | Address:
        """mmap(2) of one page with PROT_READ and perhaps PROT_WRITE; returns its address.

        With MAP_FIXED it replaces what was there, else the kernel picks an address outside the reserved range. Checks
        come in Linux's order (ksys_mmap_pgoff, do_mmap): descriptor, write permission of shared mappings, read
        permission, and only then that a pipe cannot be mapped.
        """
        if anonymous:
            mapping = MappedPage(anonymous=True, shared=False, copied=False, writable=writable, own=self.zero)
        else:
            descriptor = self.descriptor(process, fd)
            if descriptor is None:
                return Errno.EBADF
            if descriptor.pipe:
                if descriptor.write_end or (shared and writable):
                    return Errno.EACCES
                return Errno.ENODEV
            if shared and writable and not descriptor.writable:
                return Errno.EACCES
            if not descriptor.readable:
                return Errno.EACCES
            mapping = MappedPage(
                anonymous=False,
                shared=shared,
                copied=False,
                writable=writable,
                may_write=descriptor.writable,
                inum=descriptor.inum,
                page=page,
                own=self.zero,
            )
        place = address if fixed else unused(Address)
        self.memory[process, place] = mapping
        return place

    @call
    def munmap(self, process: Process, address: Address) -> int:
        """munmap(2) of one page; succeeds where nothing is mapped."""
        self.memory.pop((process, address), None)
        return 0

    @call
    def mprotect(self, process: Process, address: Address, writable: Flag) -> Errno | int:
        """mprotect(2) of one page to PROT_READ and perhaps PROT_WRITE (Linux: mprotect_fixup, VM_MAYWRITE)."""
        mapping = self.memory.get((process, address))
        if mapping is None:
            return Errno.ENOMEM
        if not mapping.anonymous and mapping.shared and writable and not mapping.may_write:
            return Errno.EACCES
        mapping.writable = writable
        return 0

    @call
    def memread(self, process: Process, address: Address) -> Signal | Data:
        """A load from a page."""
        mapping = self.memory.get((process, address))
        return Signal.SIGSEGV if mapping is None else self.load(mapping)

    @call
    def memwrite(self, process: Process, address: Address, data: Data) -> Signal | int:
        """A store of a whole page. When a store to a shared mapping marks the file's times is left open until msync
        (mmap, POSIX.1-2017)."""
        mapping = self.memory.get((process, address))
        if mapping is None:
            return Signal.SIGSEGV
        signal = self.store(mapping, data)
        if signal is not None:
            return signal
        if not mapping.anonymous and mapping.shared and choose(bool):
            inode = self.inodes[mapping.inum]
            inode.mtime = inode.ctime = now()
        return 0
