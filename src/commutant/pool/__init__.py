"""Processes that work on sets of calls side by side; knows neither what a call is nor what is done with it."""

from commutant.pool.parallel import (
    FEW,
    MakeExecutor,
    ModelReference,
    executor_named,
    map_in_processes,
    name_of_set,
)

__all__ = ["FEW", "MakeExecutor", "ModelReference", "executor_named", "map_in_processes", "name_of_set"]
