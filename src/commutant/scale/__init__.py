"""How an implementation scales, without the large machine: lines that go from core to core, counted and made a
prediction.

`benchmarks` lists what can be measured, `counting` has one of them made by so many virtual cores under the emulator and
reads what was counted (`counts`), `naming` names the variables, `steps` says per operation what came of it, `queues`
and `constants` predict throughput, `scaling` is the result as a document, `show` and `plot` put it in words and as a
picture.
"""

from commutant.scale.benchmarks import Benchmark, benchmarks, find_benchmark
from commutant.scale.constants import Constants, read_constants
from commutant.scale.counting import CORE_LIMIT, ScaleConditions
from commutant.scale.gate import ScaleGate, read_gate
from commutant.scale.plot import picture
from commutant.scale.scaling import ScaleDocument, scaling
from commutant.scale.show import print_benchmarks, print_scaling

__all__ = [
    "CORE_LIMIT",
    "Benchmark",
    "Constants",
    "ScaleConditions",
    "ScaleDocument",
    "ScaleGate",
    "benchmarks",
    "find_benchmark",
    "picture",
    "print_benchmarks",
    "print_scaling",
    "read_constants",
    "read_gate",
    "scaling",
]
