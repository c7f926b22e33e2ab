"""What a run changes in a state, and whether two runs from one state have anything to do with each other.

A run works on a copy of a state, and the copy holds by itself what the run looked at and changed (`Record`,
`SymbolicMap`). Two runs that started from one state and of which neither changes what the other looked at are
independent: after one of them the other does the same again, and both orders end in one state.
"""

from commutant._native import independent, transfer

__all__ = ["independent", "transfer"]
