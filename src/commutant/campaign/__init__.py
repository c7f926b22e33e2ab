"""What windows mean: the campaign that drives sessions, the verdict on a test, what a run adds up to."""

from commutant.campaign.campaign import Campaign
from commutant.campaign.collisions import ask_other_seeds
from commutant.campaign.keys import KeyAnswer, KeyRate, ask_other_keys, is_in_doubt
from commutant.campaign.summary import Counts, Summary, Tally
from commutant.campaign.verdict import DEFAULT_REPEATS, Outcome, Verdict, skipped

__all__ = [
    "DEFAULT_REPEATS",
    "Campaign",
    "Counts",
    "KeyAnswer",
    "KeyRate",
    "Outcome",
    "Summary",
    "Tally",
    "Verdict",
    "ask_other_keys",
    "ask_other_seeds",
    "is_in_doubt",
    "skipped",
]
