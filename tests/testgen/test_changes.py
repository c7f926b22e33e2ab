"""What a call writes next to what stood there: the statements that the one is the other."""

from __future__ import annotations

from commutant.lang import Interface
from commutant.symbolic import Context, Literal, clone, explore, unknown_record
from commutant.testgen.changes import changes


class Numbers(Interface):
    left: int
    right: int


def test_a_statement_is_the_same_whichever_number_was_written() -> None:
    """Otherwise one that is settled would count as open: a context knows statements by their normal form."""

    def program(context: Context) -> list[Literal]:
        initial = unknown_record(Numbers, Numbers.state_types())
        found = []
        for name, other in (("left", "right"), ("right", "left")):
            end = clone(initial)
            setattr(end, name, getattr(initial, other))
            found += changes(end, context)
        return found

    (path,) = explore(program)
    assert path.result is not None
    one, other = path.result
    assert one == other and one.kind == "=="
    (_, first), (_, second) = one.left[0]
    assert (first, second) == (1, -1)


def test_what_is_written_as_it_was_is_no_statement() -> None:
    def program(context: Context) -> list[Literal]:
        initial = unknown_record(Numbers, Numbers.state_types())
        end = clone(initial)
        end.left = initial.left
        return list(changes(end, context))

    assert [path.result for path in explore(program)] == [[]]
