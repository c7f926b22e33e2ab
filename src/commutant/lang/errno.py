"""Error results of calls: `Errno.ENOENT` and its like, by name, so that a model never depends on a platform's numbers."""

from __future__ import annotations

import errno as _errno
from enum import Enum

_BY_NAME = {name: name for name in sorted(_errno.errorcode.values())}

Errno = Enum("Errno", _BY_NAME, module=__name__)  # type: ignore[misc]
"""Every error name that POSIX and Linux define. A call that fails returns a member; equality is by name."""
Errno.__doc__ = "Error results of calls, by name; a call that fails returns one of these."
