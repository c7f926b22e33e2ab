"""Commutativity conditions: exactly when the calls of a set commute (paper, section 5.1)."""

from commutant.analyzer.analysis import Analysis, SetAnalysis, analyze, sets_of_calls
from commutant.analyzer.commute import CallSet, Outcome
from commutant.analyzer.parallel import executor_named

__all__ = ["Analysis", "CallSet", "Outcome", "SetAnalysis", "analyze", "executor_named", "sets_of_calls"]
