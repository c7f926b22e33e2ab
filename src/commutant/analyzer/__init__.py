"""Commutativity conditions: exactly when the calls of a set commute (paper, section 5.1)."""

from commutant.analyzer.analysis import (
    Analysis,
    SetAnalysis,
    analyze,
    conditions_fit_on_a_screen,
    estimated_costs,
    sets_of_calls,
    shard_of_sets,
)
from commutant.analyzer.commute import CallSet, PathOutcome
from commutant.analyzer.condition import Conjunction, Fact, constants_of, facts_of, rename_constants
from commutant.analyzer.document import AnalysisDocument, SetEntry
from commutant.analyzer.facts import Bounds, Facts, contradictory
from commutant.analyzer.joint import JointCallSets, JointOutcome, check_correspondence, shared_attributes
from commutant.analyzer.words.sentences import Phrase, phrase, sentence_of
from commutant.analyzer.words.vocabulary import Vocabulary
from commutant.pool import executor_named

__all__ = [
    "Analysis",
    "AnalysisDocument",
    "Bounds",
    "CallSet",
    "Conjunction",
    "Fact",
    "Facts",
    "JointCallSets",
    "JointOutcome",
    "PathOutcome",
    "Phrase",
    "SetAnalysis",
    "SetEntry",
    "Vocabulary",
    "analyze",
    "check_correspondence",
    "conditions_fit_on_a_screen",
    "constants_of",
    "contradictory",
    "estimated_costs",
    "executor_named",
    "facts_of",
    "phrase",
    "rename_constants",
    "sentence_of",
    "sets_of_calls",
    "shard_of_sets",
    "shared_attributes",
]
