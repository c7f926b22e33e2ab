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

from scalefs.calls import Calls as Calls
from scalefs.calls import DirEntry as DirEntry
from scalefs.descriptors import Descriptors as Descriptors
from scalefs.file_system import PAGE_BYTES as PAGE_BYTES
from scalefs.file_system import FileSystem as FileSystem
from scalefs.named import forget as forget
from scalefs.named import named as named
from scalefs.raw import RawFile as RawFile
from scalefs.transactions import Stale as Stale
from scalefs.transactions import Transaction as Transaction

__version__ = "0.2.0"
