"""A POSIX file system in memory: directories, links and transactions, with the calls of `os` and the files of `io`.

>>> from scalefs import FileSystem
>>> files = FileSystem(size_bytes=1 << 20)
>>> files.mkdir("/notes")
>>> with files.open("/notes/today", "w") as today:
...     today.write("plant a tree")
12
>>> files.listdir("/notes"), files.read_bytes("/notes/today")
(['today'], b'plant a tree')

Errors are those of the same calls of `os`, such as FileNotFoundError, with Linux's error numbers. Threads may share an
instance. Nothing reaches a disk, and nothing another process.
"""

from scalefs.calls import Calls, DirEntry
from scalefs.descriptors import Descriptors
from scalefs.file_system import PAGE_BYTES, FileSystem
from scalefs.named import forget, named
from scalefs.raw import RawFile
from scalefs.transactions import Stale, Transaction

__version__ = "0.2.0"

__all__ = [
    "PAGE_BYTES",
    "Calls",
    "Descriptors",
    "DirEntry",
    "FileSystem",
    "RawFile",
    "Stale",
    "Transaction",
    "forget",
    "named",
]
