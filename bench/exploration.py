"""Measures one analysis in a process of its own: `python -m bench.exploration CALLS SIZE` prints one line of JSON.

CALLS is how many of posix18's calls take part, those with the fewest paths of their own first; SIZE is how many make a
set. One process does it all, so that what is counted is all there is.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from itertools import combinations_with_replacement

from commutant.analyzer import CallSet, analyze
from commutant.lang import load_interface
from commutant.symbolic import explore, integers


def main(arguments: list[str]) -> int:
    """Explores and prints counts: sets, runs (each explores one path, excluded ones included), paths, solver calls."""
    count, size = map(int, arguments)
    model = load_interface("posix18")
    own_paths = {call: analyze(model, [call], size=1).sets[0].paths for call in model.call_names()}
    calls = sorted(own_paths, key=own_paths.__getitem__)[:count]
    chosen = list(combinations_with_replacement(calls, size))
    runs = paths = 0
    started = time.process_time()
    for one in chosen:
        for path in explore(CallSet(model, one).run):
            runs += 1
            paths += path.feasible
    seconds = time.process_time() - started
    solver = integers.statistics()
    print(
        json.dumps(
            {
                "sets": len(chosen),
                "runs": runs,
                "paths": paths,
                "solver_calls": solver.calls,
                "solver_calls_distinct": solver.distinct,
                "seconds": seconds,
                "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
