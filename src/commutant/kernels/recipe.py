"""The configuration of a small kernel: Debian's, without modules and without what `trim.config` switches off.

What is in types that tests share stays as Debian has it, so that fields fall on the same lines; `types` proves it.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from commutant.guest import Kernel, downloaded_package, open_package
from commutant.kernels.source import debian_version
from commutant.support import Budget, UsageError, read_regular

_SET = re.compile(r"CONFIG_(\w+)=(.*)")
_OFF = re.compile(r"# CONFIG_(\w+) is not set")
_LIMIT_BYTES = 4 << 20
_PACKAGE_LIMIT_BYTES = 2 << 30
_UNPACK_SECONDS = 300.0


def read_config(path: Path) -> str:
    """The text of a kernel's configuration; raises UsageError."""
    try:
        data = read_regular(path, _LIMIT_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected a kernel's configuration (.config)") from None
    return _checked(data, str(path))


def config_of(kernel: Kernel) -> str:
    """The configuration that Debian built a kernel with, from its package. Raises UsageError or RunError."""
    version = debian_version(kernel)
    if version is None:
        raise UsageError(f"{kernel.source} is no kernel of Debian's; give a configuration: --config FILE")
    package = downloaded_package(f"linux-image-{kernel.release}", "-".join(version))
    budget = Budget(str(package), _PACKAGE_LIMIT_BYTES, _UNPACK_SECONDS)
    with open_package(package, budget) as archive:
        for member in archive:
            if member.isfile() and member.name.removeprefix("./").startswith("boot/config-"):
                data = archive.read(member) if member.size <= _LIMIT_BYTES else b""
                return _checked(data, str(package))
    raise UsageError(f"{package}: a package without boot/config-*; give a configuration: --config FILE")


def _checked(data: bytes, name: str) -> str:
    text = data.decode(errors="replace")
    if len(data) > _LIMIT_BYTES or not _SET.search(text):
        raise UsageError(f"{name}: no line CONFIG_NAME=VALUE; expected a kernel's configuration (.config)")
    return text


def trimmed(config: str) -> str:
    """A configuration without modules, with the settings of `trim.config` put over its own."""
    wanted = resources.files("commutant.kernels").joinpath("trim.config").read_text()
    settings: dict[str, str] = {}
    for line in wanted.splitlines():
        if found := _OFF.fullmatch(line):
            settings[found[1]] = f"# CONFIG_{found[1]} is not set"
        elif found := _SET.fullmatch(line):
            settings[found[1]] = line
    lines = []
    for line in config.splitlines():
        found = _SET.fullmatch(line) or _OFF.fullmatch(line)
        if found and found[1] not in settings:
            lines.append(f"# CONFIG_{found[1]} is not set" if line.endswith("=m") else line)
    return "\n".join([*lines, *settings.values()]) + "\n"
