"""What the calls take."""

from __future__ import annotations

import array
import mmap
import os
from typing import TypeAlias

Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""A path from the root, with or without a slash in front; encoded as Python encodes names of files."""

Data: TypeAlias = "bytes | bytearray | memoryview | array.array[int] | mmap.mmap"
"""Bytes in an object that holds some."""
