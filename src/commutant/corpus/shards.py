"""A corpus in parts that several machines make or run, and the corpus that they are together.

A whole is cut by number alone (`commutant.support.Shard`): into its sets of calls where the tests are yet to be made,
and into single tests where they are there. A shard says how many tests each of its pieces has, so that who puts shards
together needs nothing but the shards.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from msgspec import UNSET

from commutant.corpus.file import Corpus
from commutant.corpus.testcase import ShardEntry, TestCase
from commutant.support import Shard, UsageError, plural


def shard_entry(shard: Shard | None, whole: object, pieces: Sequence[int] | None) -> ShardEntry | None:
    """What a corpus says of itself as a shard of what `whole` describes in values of JSON, with the tests of each of
    its pieces (None: one each); None without a shard."""
    if shard is None:
        return None
    digest = hashlib.sha256(json.dumps(whole).encode()).hexdigest()
    return ShardEntry(shard.number, shard.count, digest, UNSET if pieces is None else tuple(pieces))


def shard_of_corpus(corpus: Corpus, shard: Shard) -> Corpus:
    """The tests of one shard, every N-th of a corpus.

    Raises UsageError if it is a shard, or has fewer tests than there are shards.
    """
    if corpus.shard is not None:
        raise UsageError(
            f"the corpus is shard {corpus.shard.shard} of another; expected a whole one to take a shard of"
        )
    shard.require_piece(len(corpus.tests), plural(len(corpus.tests), "test"))
    whole = (corpus.model_hash, corpus.level, [test.id for test in corpus.tests])
    return replace(corpus, tests=list(shard.of(corpus.tests)), shard=shard_entry(shard, whole, None))


def in_order(named: Sequence[tuple[str, Corpus]]) -> list[int]:
    """The places of all shards of one whole, by their numbers; each corpus has a name for messages.

    Raises UsageError if one is no shard, is of another whole, is there twice, is missing, or has more or fewer pieces
    than it can have with its number.
    """
    first_name, first = named[0]
    places: dict[int, int] = {}
    for place, (name, corpus) in enumerate(named):
        entry = corpus.shard
        if entry is None or first.shard is None:
            raise UsageError(f"{name if entry is None else first_name} is no shard; expected what --shard has made")
        if _is_of(corpus) != _is_of(first):
            what = "of as many shards" if entry.count != first.shard.count else "of the same tests"
            raise UsageError(
                f"{name} is shard {entry.shard} of {_whole(corpus)}, {first_name} is {first.shard.shard} of "
                f"{_whole(first)}; expected shards {what}"
            )
        if entry.number in places:
            other = named[places[entry.number]][0]
            raise UsageError(f"{other} and {name} are both shard {entry.shard}; expected each once")
        places[entry.number] = place
    assert first.shard is not None
    missing = [number for number in range(1, first.shard.count + 1) if number not in places]
    if missing:
        texts = ", ".join(f"{number}/{first.shard.count}" for number in missing[:8])
        raise UsageError(f"{plural(len(missing), 'shard is', 'shards are')} missing: {texts}; expected all of them")
    in_turn = [places[number] for number in sorted(places)]
    counts = [len(_pieces(named[place][1])) for place in in_turn]
    for place, before, count in zip(in_turn[1:], counts, counts[1:], strict=False):
        if not counts[0] - 1 <= count <= before:
            raise UsageError(
                f"shard 1 has {plural(counts[0], 'piece')}, and {named[place][0]} has {count:,}; expected as many, or "
                "one less from some shard on"
            )
    return in_turn


def together(shards: Sequence[Corpus]) -> Corpus:
    """The corpus that shards in order (`in_order`) are of."""
    pieces = [_pieces(shard) for shard in shards]
    tests: list[TestCase] = []
    for number in range(sum(map(len, pieces))):
        tests += pieces[number % len(shards)][number // len(shards)]
    untested = {name: found for shard in shards for name, found in shard.untested.items()}
    return replace(shards[0], tests=tests, untested=untested, analysis=None, left_out={}, shard=None)


def _pieces(shard: Corpus) -> list[list[TestCase]]:
    assert shard.shard is not None
    tests = iter(shard.tests)
    if shard.shard.pieces is UNSET:
        return [[test] for test in tests]
    return [list(islice(tests, count)) for count in shard.shard.pieces]


def _is_of(corpus: Corpus) -> tuple[object, ...]:
    entry = corpus.shard
    return corpus.interface, corpus.level, corpus.model_hash, entry and (entry.count, entry.whole)


def _whole(corpus: Corpus) -> str:
    whole = "" if corpus.shard is None else f" {corpus.shard.whole[:12]}"
    return f"{corpus.interface}, level {corpus.level}, model {corpus.model_hash[:12]}, tests{whole}"
