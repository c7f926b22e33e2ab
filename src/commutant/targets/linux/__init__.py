"""The target `linux`: Debian's kernel, or one of the user's own, in virtual machines.

The modules follow a run: `prepare` and `kernel` (with `bzimage`, `elf`, `modules`) get a kernel, `file_systems` says
what one needs and makes its disk, `cpio` packs all that with the runner as init, `emulator`, `machine`, `qmp` and
`region` run a virtual machine and talk to it, `snapshot` boots once, `session` runs windows with `tracing`, `selftest`
checks the tracer before every campaign, and `target` ties it together.
"""

from __future__ import annotations

from collections.abc import Mapping

from commutant.targets.base import Target


def create(argument: str, options: Mapping[str, str]) -> Target:
    """The target for `linux[:fs=NAME][,kernel=PATH]...`, not started; raises UsageError for options unknown."""
    from commutant.targets.linux.target import LinuxTarget, parse_options

    return LinuxTarget(argument, parse_options(argument, options))
