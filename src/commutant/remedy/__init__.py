"""From a finding to a change: what a change of a type's layout, or of an access, frees; and whether it did."""

from commutant.remedy.change import Change, Way, read_change
from commutant.remedy.documents import HistoryDocument, ProofDocument, RemedyDocument
from commutant.remedy.evidence import ProvenRun, commit_message, print_proof, proof_document
from commutant.remedy.foretell import Foretold, foretell
from commutant.remedy.history import History, history, history_document, print_history
from commutant.remedy.loops import Loops, loops
from commutant.remedy.page import history_page
from commutant.remedy.prove import Proof, prove
from commutant.remedy.rank import Ranked, Ranking, rank
from commutant.remedy.scene import Scene, scene_of
from commutant.remedy.sense import Sense
from commutant.remedy.show import print_foretold, print_ranking, remedy_document
from commutant.remedy.worth import worth_of

__all__ = [
    "Change",
    "Foretold",
    "History",
    "HistoryDocument",
    "Loops",
    "Proof",
    "ProofDocument",
    "ProvenRun",
    "Ranked",
    "Ranking",
    "RemedyDocument",
    "Scene",
    "Sense",
    "Way",
    "commit_message",
    "foretell",
    "history",
    "history_document",
    "history_page",
    "loops",
    "print_foretold",
    "print_history",
    "print_proof",
    "print_ranking",
    "proof_document",
    "prove",
    "rank",
    "read_change",
    "remedy_document",
    "scene_of",
    "worth_of",
]
