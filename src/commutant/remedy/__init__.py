"""From a finding to a change: what a change of a type's layout, or of an access, frees; and whether it did."""

from commutant.remedy.change import Change, Way, read_change
from commutant.remedy.documents import HistoryDocument, ProofDocument, RemedyDocument, TransferDocument
from commutant.remedy.evidence import ProvenRun, commit_message, print_proof, proof_document
from commutant.remedy.foretell import Foretold, foretell
from commutant.remedy.history import History, history, history_document, print_history
from commutant.remedy.loops import Loops, loops
from commutant.remedy.mix import Mix, read_mix
from commutant.remedy.page import history_page
from commutant.remedy.places import without_owner
from commutant.remedy.prove import Proof, prove
from commutant.remedy.prove_transfers import TransferProof, TransferTally, prove_transfers
from commutant.remedy.rank import Ranked, Ranking, rank
from commutant.remedy.savings import Saving, Savings, mean_transfers, rank_savings, saving_of
from commutant.remedy.scene import Scene, scene_of
from commutant.remedy.sense import Sense
from commutant.remedy.show import print_foretold, print_next, print_ranking, remedy_document
from commutant.remedy.show_savings import print_saving, print_savings, savings_document
from commutant.remedy.traffic import DEFAULT_CORES, MAX_CORES, Traffic, Transfers, traffic_of
from commutant.remedy.worth import worth_of

__all__ = [
    "DEFAULT_CORES",
    "MAX_CORES",
    "Change",
    "Foretold",
    "History",
    "HistoryDocument",
    "Loops",
    "Mix",
    "Proof",
    "ProofDocument",
    "ProvenRun",
    "Ranked",
    "Ranking",
    "RemedyDocument",
    "Saving",
    "Savings",
    "Scene",
    "Sense",
    "Traffic",
    "TransferDocument",
    "TransferProof",
    "TransferTally",
    "Transfers",
    "Way",
    "commit_message",
    "foretell",
    "history",
    "history_document",
    "history_page",
    "loops",
    "mean_transfers",
    "print_foretold",
    "print_history",
    "print_next",
    "print_proof",
    "print_ranking",
    "print_saving",
    "print_savings",
    "proof_document",
    "prove",
    "prove_transfers",
    "rank",
    "rank_savings",
    "read_change",
    "read_mix",
    "remedy_document",
    "saving_of",
    "savings_document",
    "scene_of",
    "traffic_of",
    "without_owner",
    "worth_of",
]
