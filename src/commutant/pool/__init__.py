"""Processes that work on sets of calls side by side; knows neither what a call is nor what is done with it."""

from commutant.pool.cluster import CLUSTER, DaskExecutor
from commutant.pool.kept import KeptResults
from commutant.pool.parallel import FEW, MakeExecutor, executor_named, map_in_processes
from commutant.pool.reference import ModelReference, name_of_set

__all__ = [
    "CLUSTER",
    "FEW",
    "DaskExecutor",
    "KeptResults",
    "MakeExecutor",
    "ModelReference",
    "executor_named",
    "map_in_processes",
    "name_of_set",
]
