"""Implementations under test: what the checker asks of one (`base`), which there are (`registry`), and those."""

from commutant.targets.base import Job, SequenceRecord, Session, Target, WindowRecord
from commutant.targets.registry import TARGETS, load_target, parse_target

__all__ = ["TARGETS", "Job", "SequenceRecord", "Session", "Target", "WindowRecord", "load_target", "parse_target"]
