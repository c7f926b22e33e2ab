"""Texts that are kept once: each has a symbol, by which it is compared and found again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from commutant.lang import Errno, Interface, Invocation, Map, Sort, call, invoke, unused, well_formed


class Name(Sort, word="text"):
    """A text."""


class Symbol(Sort, opaque=True):
    """What stands for a text, picked by the library."""


class Interner(Interface):
    """Texts and their symbols; none is ever forgotten."""

    symbols: Map[Name, Symbol]
    names: Map[Symbol, Name]

    @well_formed("names")
    def names_lead_back(self, symbol: Symbol, name: Name) -> bool:
        """A symbol that is there is its text's."""
        return name in self.symbols and self.symbols[name] == symbol

    def complete(self) -> None:
        """Every text's symbol leads back to it."""
        for name, symbol in self.symbols.items():
            self.names[symbol] = name

    @call
    def intern(self, name: Name) -> Symbol:
        """The text's symbol, a new one if it has none."""
        if name not in self.symbols:
            symbol = unused(Symbol)
            self.symbols[name] = symbol
            self.names[symbol] = name
        return self.symbols[name]

    @call
    def find(self, name: Name) -> Errno | Symbol:
        """The text's symbol, if it has one."""
        return self.symbols.get(name, Errno.ENOENT)

    @call
    def resolve(self, symbol: Symbol) -> Name:
        """The symbol's text."""
        return self.names[symbol]

    def setup(self) -> Iterable[Invocation]:
        """Interns every text."""
        for name in self.symbols:
            yield invoke("intern", name=name)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Looks for every text of the test."""
        for name in values[Name]:
            yield invoke("find", name=name)
