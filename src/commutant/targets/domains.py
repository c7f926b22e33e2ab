"""The target `scalefs:domains=N`: one file system over N domains (docs/reference/domains.md).

Domains share no coherent memory; the runner plays all of them in one thread, with messages between them. A call on
names comes from the domain of its core, any other from that of its process. One thread makes all calls, so nothing
can be shared between cores: no run says anything about sharing. `level=close-to-open` has data seen when a file is
closed and opened, as `posix-close-to-open` allows it; all calls come from their process's domain then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from commutant.targets.base import Target
from commutant.targets.options import Option, number, one_of, read_options
from commutant.targets.plain import PlainTarget
from commutant.targets.process.surroundings import OPTIONS as SURROUNDINGS
from commutant.targets.process.surroundings import Surroundings

LEVELS = ("posix", "close-to-open")
"""What domains see of each other's data, and when; the first is the usual one."""

OPTIONS: Mapping[str, Option] = {"domains": number(1, 16), "level": one_of(*LEVELS), **SURROUNDINGS}

_SOCKETS = ("send", "receive", "bind", "sendto", "recvfrom", "use_sockets", "make_pair", "make_named")
_SEEN_OF_SOCKETS = ("deliver", "deliver_to", "drain", "drain_named")
_TRANSACTIONS = ("transactions", "begin_transaction", "end_transaction", "count_transacted")
NOT_ACROSS_DOMAINS = frozenset((*_SOCKETS, *_SEEN_OF_SOCKETS, *_TRANSACTIONS))
"""Calls that are not done across domains yet; the page on domains says so."""

_SOCKET_CLOSE = ("pair",)
"""The parameters of the call `close` that is a socket's."""


def create(argument: str, options: Mapping[str, str]) -> Target:
    """The target for `scalefs:domains=N[,KEY=VALUE,...]`, not started; raises UsageError for keys not in `OPTIONS`."""
    read = read_options(argument, options, OPTIONS)
    domain_count, level = read.pop("domains"), read.pop("level", LEVELS[0])
    return DomainsTarget(argument, domain_count, level, Surroundings(**read))


class DomainsTarget(PlainTarget):
    """A file system over domains, in programs of one thread; see `commutant.targets.base.Target`."""

    _limits = "one thread plays all domains of a test, so tests tell results alone: conflict-free means nothing there"

    def __init__(self, argument: str, domain_count: int, level: str, surroundings: Surroundings) -> None:
        """Does nothing yet; `level` is one of `LEVELS`."""
        super().__init__(argument, None, surroundings)
        self._domain_count = domain_count
        self._level = level

    def _mode(self) -> Sequence[str]:
        return ("--domains", str(self._domain_count), "--level", self._level)

    def implements(self, call: str, parameters: Iterable[str]) -> bool:
        """Whether the program knows this call and does it across domains."""
        parameters = tuple(parameters)
        is_missing = call in NOT_ACROSS_DOMAINS or (call == "close" and parameters == _SOCKET_CLOSE)
        return not is_missing and super().implements(call, parameters)

    def describe(self) -> Mapping[str, object]:
        """As `PlainTarget.describe`, how many domains, and what they see of each other's data."""
        return {"domains": self._domain_count, "level": self._level, **super().describe()}
