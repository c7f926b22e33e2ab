"""Libraries under test, in a program that runs under QEMU's user mode with the tracer.

`emulator` finds QEMU, `program` names what a program's addresses are, `running` runs one program, `traced` one with
its tracer, `session` runs windows in it. A target such as `commutant.targets.scalefs` brings the program.
"""

from commutant.targets.process.objects import ObjectMap
from commutant.targets.runner import ask
from commutant.targets.stacks import Stacks

__all__ = ["ObjectMap", "Stacks", "ask"]
