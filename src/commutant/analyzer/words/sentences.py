"""Conditions as short sentences: `src.0, src.1 in names; src.0 ≠ dst.1; dst.0 = dst.1`.

Between calls of the same name, conditions that are mirror images of each other are printed once, marked "or the calls
exchanged".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

from commutant.analyzer.condition import Conjunction, Fact
from commutant.analyzer.words.vocabulary import Vocabulary
from commutant.symbolic import Term


def sentences(cubes: Sequence[Conjunction], calls: tuple[str, ...], vocabulary: Vocabulary) -> list[str]:
    """One sentence per cube, mirror images merged."""
    return [text for text, _ in cases(cubes, calls, vocabulary)]


def cases(
    cubes: Sequence[Conjunction], calls: tuple[str, ...], vocabulary: Vocabulary
) -> list[tuple[str, Conjunction]]:
    """The sentences, each with the cube that it says."""
    found: list[tuple[str, Conjunction]] = []
    seen: set[frozenset[Fact]] = set()
    available = {frozenset(_canonical(fact) for fact in cube) for cube in cubes}
    for cube in cubes:
        images = {
            frozenset(_canonical(_exchange(fact, calls, order)) for fact in cube) for order in _symmetries(calls)
        } & available
        if not images & seen:
            text = sentence(cube, vocabulary)
            found.append((text + ("  (or the calls exchanged)" if len(images) > 1 else ""), cube))
        seen |= images
    return found


class Phrase(NamedTuple):
    """How a sentence says one fact: `text`, or in a sentence with others of its kind as one phrase.

    Of kind `in` are facts that say of a key (`text`) that a map (`other`) has it or not, of kind `differ` those that
    say of two terms that they are not the same; the rest stands alone, as `flag`, `same` or `compare`. `choices` are
    those that it speaks of.
    """

    kind: str
    holds: bool
    text: str
    other: str
    choices: tuple[str, ...]
    words: str = ""
    """What a difference is by the model's own words, where it stands alone."""


def phrase(fact: Fact, vocabulary: Vocabulary) -> Phrase:
    """One fact as a part of a sentence."""
    kind, text, other, words = "compare", "", "", ""
    if fact.kind == "bool":
        text = vocabulary.sentence_term(fact.left)
        if _is_presence(fact, vocabulary):
            kind = "in"
            text, other = text.rsplit(" in ", 1)
        else:
            kind = "flag"
            text = text if fact.holds else f"not {text}"
    elif fact.kind == "same":
        kind, text = "differ", vocabulary.sentence_term(fact.left)
        other = vocabulary.sentence_term(fact.right)
        words = _in_words(fact, vocabulary)
        if fact.holds:
            kind, text, other = "same", words or f"{text} = {other}", ""
    else:
        text = _comparison(fact, vocabulary)
    return Phrase(kind, fact.holds, text, other, tuple(vocabulary.chosen_in((fact,))), words)


def _in_words(fact: Fact, vocabulary: Vocabulary) -> str:
    """`name.0 and name.1 are two names of one file`, `key.0 and key.1 are the same key`; empty where the model has no
    words for it."""
    left, right = vocabulary.leads_to(fact.left), vocabulary.leads_to(fact.right)
    if left is None or right is None or left.word != right.word:
        word = vocabulary.word_of(fact.left) or vocabulary.word_of(fact.right)
        both = f"{vocabulary.sentence_term(fact.left)} and {vocabulary.sentence_term(fact.right)} are"
        return "" if not word else f"{both} the same {word}" if fact.holds else f"{both} different {word}s"
    of = f"one {left.word}" if fact.holds else f"different {left.word}s"
    if left.map == right.map and left.map.endswith("s"):
        return f"{left.key} and {right.key} are {'two ' if fact.holds else ''}{left.map} of {of}"
    return f"{left.map}[{left.key.strip('()')}] and {right.map}[{right.key.strip('()')}] are of {of}"


def sentence(cube: Conjunction, vocabulary: Vocabulary) -> str:
    """One cube as a sentence; `always` for the empty one."""
    return sentence_of([phrase(fact, vocabulary) for fact in cube], vocabulary)


def sentence_of(phrases: Sequence[Phrase], vocabulary: Vocabulary) -> str:
    """The phrases of a cube's facts as a sentence; `always` without any."""
    if not phrases:
        return "always"
    present: dict[str, list[str]] = {}
    absent: dict[str, list[str]] = {}
    differing: dict[frozenset[str], str] = {}
    alone: dict[str, list[str]] = {"flag": [], "same": [], "compare": []}
    for kind, holds, text, other, _, words in phrases:
        if kind == "in":
            (present if holds else absent).setdefault(other, []).append(text)
        elif kind == "differ":
            differing[frozenset((text, other))] = words
        else:
            alone[kind].append(text)
    parts = [f"{_and(keys)} in {container}" for container, keys in present.items()]
    parts += [f"{_and(keys)} not in {container}" for container, keys in absent.items()]
    parts += [*alone["flag"], *alone["same"], *_differences(differing), *alone["compare"]]
    chosen = ", ".join([vocabulary.short[name] for name in sorted({n for one in phrases for n in one.choices})])
    return (f"for some {chosen}: " if chosen else "") + "; ".join(parts)


def _is_presence(fact: Fact, vocabulary: Vocabulary) -> bool:
    term = fact.left
    return term[0] == "apply" and bool(vocabulary.functions[term[1]].presence_of)


def _differences(words: dict[frozenset[str], str]) -> list[str]:
    """Disequalities, with those that make a complete group written as `a, b, c all differ`."""
    texts: list[str] = []
    pairs = set(words)
    terms = sorted({term for pair in pairs for term in pair})
    while len(pairs) >= 3:
        group = _largest_group(terms, pairs)
        if len(group) < 3:
            break
        texts.append(f"{', '.join(group)} all differ")
        pairs -= {frozenset((a, b)) for a in group for b in group if a != b}
    return texts + [words[frozenset(pair)] or " ≠ ".join(pair) for pair in sorted(map(sorted, pairs))]


def _largest_group(terms: Sequence[str], pairs: set[frozenset[str]]) -> list[str]:
    best: list[str] = []
    for start in terms:
        group = [start]
        for term in terms:
            if term not in group and all(frozenset((term, member)) in pairs for member in group):
                group.append(term)
        if len(group) > len(best):
            best = group
    return sorted(best)


def _comparison(fact: Fact, vocabulary: Vocabulary) -> str:
    """`a - b + 1 <= 0` as `a < b`, and of a length of which the model has a word `the queue is empty`."""
    if filled := _how_full(fact, vocabulary):
        return filled
    positive = tuple((term, c) for term, c in fact.left if c > 0)
    negative = tuple((term, -c) for term, c in fact.left if c < 0)
    constant = fact.right
    if fact.kind == "==":
        sign = "=" if fact.holds else "≠"
    else:
        sign = "≤" if fact.holds else ">"
        if constant == 1 and fact.holds:
            sign, constant = "<", 0
        elif constant == 1:
            sign, constant = "≥", 0
    left = vocabulary.sentence_sum(positive, max(0, constant))
    return f"{left} {sign} {vocabulary.sentence_sum(negative, max(0, -constant))}"


def _how_full(fact: Fact, vocabulary: Vocabulary) -> str:
    """How full something is, in the model's own words; empty where it has none, or the fact says something else."""
    if len(fact.left) != 1 or abs(fact.left[0][1]) != 1:
        return ""
    term, sign = fact.left[0]
    container = vocabulary.container(term)
    if not container:
        return ""
    number = -sign * fact.right  # the length is at most, or at least, or equal to this
    if fact.kind == "==":
        if number:
            return f"{container} {'holds' if fact.holds else 'does not hold'} {number}"
        return f"{container} is {'' if fact.holds else 'not '}empty"
    is_at_most = (sign > 0) == fact.holds
    if sign < 0:
        number -= 1  # at least one more
    if not number:
        return f"{container} is {'' if is_at_most else 'not '}empty"
    return f"{container} holds {'at most' if is_at_most else 'more than'} {number}"


def _and(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def _symmetries(calls: tuple[str, ...]) -> list[tuple[int, ...]]:
    indices = range(len(calls))
    return [order for order in permutations(indices) if all(calls[order[i]] == calls[i] for i in indices)]


def _exchange(fact: Fact, calls: tuple[str, ...], order: tuple[int, ...]) -> Fact:
    names = {f"{call}.{index}.": f"{calls[order[index]]}.{order[index]}." for index, call in enumerate(calls)}

    def change(term: Term) -> Term:
        if term[0] == "constant":
            for before, after in names.items():
                if term[1].startswith(before):
                    return ("constant", after + term[1][len(before) :])
            return term
        if term[0] == "apply":
            return ("apply", term[1], tuple(change(argument) for argument in term[2]))
        if term[0] == "sum":
            return ("sum", tuple((change(inner), c) for inner, c in term[1]), term[2])
        return term

    if fact.kind == "bool":
        return Fact("bool", change(fact.left), None, fact.holds)
    if fact.kind == "same":
        return Fact("same", change(fact.left), change(fact.right), fact.holds)
    return Fact(fact.kind, tuple((change(term), c) for term, c in fact.left), fact.right, fact.holds)


def _canonical(fact: Fact) -> Fact:
    if fact.kind == "same":
        left, right = sorted((fact.left, fact.right), key=repr)
        return Fact("same", left, right, fact.holds)
    if fact.kind in ("<=", "=="):
        return Fact(fact.kind, tuple(sorted(fact.left, key=repr)), fact.right, fact.holds)
    return fact
