"""Test cases as stand-alone C programs, for people who want to run or read one without Commutant.

`calls` is the table of calls that have a C form; `program` puts a program together from it and the fixed parts in
`templates/c`; `expected` says what a program prints; `literal` writes text that a C compiler reads as meant, whatever
it holds. `loop` makes of a test a program that repeats its calls, as `repeat` says, from the `state` of its set-up.
"""

from commutant.report.cprogram.expected import expected_text
from commutant.report.cprogram.loop import Loop, loop_of, loop_program
from commutant.report.cprogram.program import Programs, Unsupported, c_program

__all__ = ["Loop", "Programs", "Unsupported", "c_program", "expected_text", "loop_of", "loop_program"]
