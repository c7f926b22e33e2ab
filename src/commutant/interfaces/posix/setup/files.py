"""Set-up of files, their names, their open descriptions, and working directories."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from commutant.interfaces.posix.operations import FileOperations, Operations
from commutant.interfaces.posix.state import Data, Descriptor, Directory, Flag, Inum, Name, Number, Page
from commutant.lang import Invocation, Process, invoke, now, setup_call, unused


class FileSetup(FileOperations):
    """The calls that make files and what leads to them."""

    @setup_call
    def make_file(self, file: Number, length: Page) -> Inum:
        """A file of `length` pages, all of them holes, under a name that no directory of the test holds."""
        inum = unused(Inum)
        self._files[file] = inum
        inode = self.new_inode(length)
        inode.nlink = 1
        self.inodes[inum] = inode
        return inum

    @setup_call
    def fill_page(self, file: Number, page: Page, data: Data) -> None:
        """Writes a page below the file's length."""
        self.write_page(self.inodes[self._files[file]], page, data)

    @setup_call
    def open_file(
        self, process: Process, fd: Number, file: Number, readable: Flag, writable: Flag, offset: Page
    ) -> None:
        """Opens the file under exactly this number."""
        description = Descriptor(
            pipe=False,
            write_end=False,
            inum=self._files[file],
            offset=offset,
            readable=readable,
            writable=writable,
        )
        self.put_descriptor(process, fd, description)

    @setup_call
    def forget_file(self, file: Number) -> None:
        """Removes the name that kept the file: it has the names of the test's directories left."""
        inode = self.inodes[self._files.pop(file)]
        inode.nlink -= 1
        inode.ctime = now()

    def make_contents(self, numbers: Mapping[Inum, int]) -> Iterator[Invocation]:
        """Makes the files of this state, which get these numbers."""
        for inum, file in numbers.items():
            inode = self.inodes[inum]
            yield invoke("make_file", file=file, length=inode.length)
            for page, data in inode.pages.items():
                yield invoke("fill_page", file=file, page=page, data=data)

    def open_files(
        self, numbers: Mapping[Inum, int], chosen: Container[tuple[Process, Any]] | None = None
    ) -> Iterator[Invocation]:
        """Opens the files of this state, which have these numbers, under the chosen descriptors or all."""
        for process, fd, descriptor in self.open_descriptors():
            if not descriptor.pipe and (chosen is None or (process, fd) in chosen):
                yield invoke(
                    "open_file",
                    process=process,
                    fd=fd,
                    file=numbers[descriptor.inum],
                    readable=descriptor.readable,
                    writable=descriptor.writable,
                    offset=descriptor.offset,
                )


class NamedFileSetup(FileSetup, Operations):
    """The calls that make what leads to files."""

    @setup_call
    def name_file(self, file: Number, directory: Directory, name: Name) -> None:
        """Links the file into a directory, which comes into being with its first name."""
        inum = self._files[file]
        self.names[directory, name] = inum
        self.inodes[inum].nlink += 1
        self.inodes[inum].ctime = now()

    @setup_call
    def enter_directory(self, process: Process, directory: Directory) -> None:
        """chdir(2) into a directory of the test, which comes into being if need be."""
        self.working_directory[process] = directory

    def make_files(self, numbers: Mapping[Inum, int]) -> Iterator[Invocation]:
        """Makes the files of this state, which get these numbers, and all that leads to them but memory."""
        yield from self.make_contents(numbers)
        for (directory, name), inum in self.names.items():
            yield invoke("name_file", file=numbers[inum], directory=directory, name=name)
        for process, directory in self.working_directory.items():
            yield invoke("enter_directory", process=process, directory=directory)
        yield from self.open_files(numbers)
