"""Implementations under test: what the checker asks of one (`base`), which there are (`registry`), and those."""

from commutant.targets.base import OF_MACHINE, Job, SequenceRecord, Session, Target, WindowRecord
from commutant.targets.far import on_executor
from commutant.targets.options import CPUS_KEY, Option, cpus, number, read_options
from commutant.targets.registry import TARGETS, load_target, parse_target, target_options

__all__ = [
    "CPUS_KEY",
    "OF_MACHINE",
    "TARGETS",
    "Job",
    "Option",
    "SequenceRecord",
    "Session",
    "Target",
    "WindowRecord",
    "cpus",
    "load_target",
    "number",
    "on_executor",
    "parse_target",
    "read_options",
    "target_options",
]
