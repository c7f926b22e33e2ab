"""Local datagram sockets, as Linux has them (unix(7)): those of a pair, and those that have a name.

Calls do not wait: EAGAIN is returned instead. A message is one byte. How many messages a socket holds is the
implementation's matter (POSIX `send` has EAGAIN for that), so states hold few. In `sockets` messages arrive in the
order in which they were sent; in `sockets-unordered` any that waits may come next.

A pair is named by the number of its receiving end; messages go one way, as the other is the same with other numbers. A
named socket is named by its name, which is one of the abstract namespace and lasts as long as the socket. Numbers of
descriptors are left out: which one a socket gets is what `posix18` is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import (
    Capacity,
    Errno,
    Interface,
    Invocation,
    Map,
    Range,
    Seq,
    Sort,
    Struct,
    call,
    choose,
    invoke,
    setup_call,
)

Pair = Annotated[int, Range(0, 3)]
"""A pair's number."""


class Message(Sort, numbered=True, content=True):
    """A message: one byte of this value."""


class Name(Sort):
    """A socket's name."""


class Socket(Struct):
    """What a socket receives: messages that wait, if somebody may still take them."""

    open: bool
    waiting: Annotated[Seq[Message], Capacity(2)]

    def relevant(self) -> Iterable[str]:
        """What waits in a socket that was closed is lost."""
        return ("open", "waiting") if self.open else ("open",)


class Mailbox(Struct):
    """A socket that has a name."""

    waiting: Annotated[Seq[Message], Capacity(2)]


class Sockets(Interface):
    """Sockets whose messages come in order."""

    ordered: bool = True

    pairs: Map[Pair, Socket]
    names: Map[Name, Mailbox]

    @call
    def send(self, pair: Pair, message: Message) -> Errno | int:
        """send(2) with MSG_DONTWAIT at the one end; returns the bytes sent. A closed peer refuses each time (Linux,
        unix_dgram_sendmsg: once; then the sender has no peer)."""
        if pair not in self.pairs:
            return Errno.EBADF
        socket = self.pairs[pair]
        if not socket.open:
            return Errno.ECONNREFUSED
        socket.waiting.append(message)
        return 1

    @call
    def receive(self, pair: Pair) -> Errno | Message:
        """recv(2) with MSG_DONTWAIT at the other end (Linux: unix_dgram_recvmsg)."""
        if pair not in self.pairs or not self.pairs[pair].open:
            return Errno.EBADF
        return self.take(self.pairs[pair].waiting)

    @call
    def close(self, pair: Pair) -> Errno | int:
        """close(2) of the end that receives: messages that wait are lost."""
        if pair not in self.pairs or not self.pairs[pair].open:
            return Errno.EBADF
        socket = self.pairs[pair]
        socket.open = False
        socket.waiting.clear()
        return 0

    @call
    def bind(self, name: Name) -> Errno | int:
        """bind(2) of a new socket to a name; the socket is closed again if another has the name."""
        if name in self.names:
            return Errno.EADDRINUSE
        self.names[name] = Mailbox(waiting=Seq())
        return 0

    @call
    def sendto(self, name: Name, message: Message) -> Errno | int:
        """sendto(2) with MSG_DONTWAIT to the socket that has a name."""
        if name not in self.names:
            return Errno.ECONNREFUSED
        self.names[name].waiting.append(message)
        return 1

    @call
    def recvfrom(self, name: Name) -> Errno | Message:
        """recvfrom(2) with MSG_DONTWAIT of the socket that has a name."""
        if name not in self.names:
            return Errno.EBADF
        return self.take(self.names[name].waiting)

    def take(self, waiting: Seq[Message]) -> Errno | Message:
        """Takes the message that was sent first."""
        return waiting.pop(0) if waiting else Errno.EAGAIN

    @setup_call
    def use_sockets(self, ordered: bool) -> None:
        """Says which sockets this test is about."""

    @setup_call
    def make_pair(self, pair: Pair, receives: bool) -> None:
        """Two sockets that are each other's peers, of which that which receives may be closed again."""
        self.pairs[pair] = Socket(open=receives, waiting=Seq())

    @setup_call
    def make_named(self, name: Name) -> None:
        """A socket with a name."""
        self.names[name] = Mailbox(waiting=Seq())

    @setup_call
    def deliver(self, pair: Pair, message: Message, sender: int) -> None:
        """Sends a message into a pair. `sender` counts the cores, which do so in turn."""
        self.pairs[pair].waiting.append(message)

    @setup_call
    def deliver_to(self, name: Name, message: Message, sender: int) -> None:
        """Sends a message to a name, as `deliver`."""
        self.names[name].waiting.append(message)

    @setup_call
    def drain(self, pair: Pair, ordered: bool) -> Errno | Seq[Message]:
        """Takes all messages of a pair; they are sorted where there is no order."""
        if pair not in self.pairs or not self.pairs[pair].open:
            return Errno.EBADF
        return _all(self.pairs[pair].waiting, ordered)

    @setup_call
    def drain_named(self, name: Name, ordered: bool) -> Errno | Seq[Message]:
        """Takes all messages of the socket that has a name, as `drain`."""
        if name not in self.names:
            return Errno.EBADF
        return _all(self.names[name].waiting, ordered)

    def setup(self) -> Iterator[Invocation]:
        """Makes the sockets and sends the messages that wait: each from another core, as far as there are cores."""
        yield invoke("use_sockets", ordered=self.ordered)
        for pair, socket in self.pairs.items():
            yield invoke("make_pair", pair=pair, receives=socket.open)
            if socket.open:
                for sender, message in enumerate(socket.waiting):
                    yield invoke("deliver", pair=pair, message=message, sender=sender)
        for name, mailbox in self.names.items():
            yield invoke("make_named", name=name)
            for sender, message in enumerate(mailbox.waiting):
                yield invoke("deliver_to", name=name, message=message, sender=sender)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """Takes all messages of all pairs and names."""
        for name in values[Name]:
            yield invoke("drain_named", name=name, ordered=self.ordered)
        for pair in range(_MOST_PAIRS):
            yield invoke("drain", pair=pair, ordered=self.ordered)


_MOST_PAIRS = 4


class UnorderedSockets(Sockets):
    """Sockets of whose messages any that waits may come next."""

    interface_name = "sockets-unordered"
    ordered: bool = False

    def take(self, waiting: Seq[Message]) -> Errno | Message:
        """Takes a message."""
        if not waiting:
            return Errno.EAGAIN
        message: Message = choose(waiting)
        waiting.remove(message)
        return message

    def equivalent(self, other: Any) -> Any:
        """Whether the same messages wait, in whatever order."""

        def always(_: Any) -> bool:
            return True

        return self.pairs.equal_where(other.pairs, always, same=_same_socket) and self.names.equal_where(
            other.names, always, same=_same_waiting
        )


def _same_socket(mine: Socket, theirs: Socket) -> bool:
    return mine.open == theirs.open and (not mine.open or _same_waiting(mine, theirs))


def _same_waiting(mine: Any, theirs: Any) -> bool:
    if len(mine.waiting) != len(theirs.waiting):
        return False
    return all(mine.waiting.count(message) == theirs.waiting.count(message) for message in mine.waiting)


def _all(waiting: Seq[Message], ordered: bool) -> Seq[Message]:
    messages: list[Any] = list(waiting)
    waiting.clear()
    return Seq(messages if ordered else sorted(messages))
