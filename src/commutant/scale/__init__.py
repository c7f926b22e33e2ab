"""How an implementation scales, without the large machine: lines that go from core to core, counted and made a
prediction.

`benchmarks` lists those that ship (names: `naming`), `programs` takes any program whose operations are marked;
`counting` runs one of these on N virtual cores under the emulator and reads what was counted (`counts`). `queues`
and `constants` predict throughput, `scaling` is the result as a document; `show`, `plot` and `page` put it in words, as
a picture, and as a page.
"""

from commutant.scale.benchmarks import Benchmark, benchmarks, find_benchmark
from commutant.scale.constants import Constants, read_constants
from commutant.scale.counting import CORE_LIMIT, ScaleConditions, Subject
from commutant.scale.gate import ScaleGate, read_gate
from commutant.scale.page import page
from commutant.scale.plot import picture
from commutant.scale.programs import MarkedProgram, marked_program
from commutant.scale.scaling import ScaleDocument, scaling
from commutant.scale.show import print_benchmarks, print_scaling

__all__ = [
    "CORE_LIMIT",
    "Benchmark",
    "Constants",
    "MarkedProgram",
    "ScaleConditions",
    "ScaleDocument",
    "ScaleGate",
    "Subject",
    "benchmarks",
    "find_benchmark",
    "marked_program",
    "page",
    "picture",
    "print_benchmarks",
    "print_scaling",
    "read_constants",
    "read_gate",
    "scaling",
]
