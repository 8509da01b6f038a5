"""The connections of a process: they read requests for the worker's threads, and send the answers.

A request is `RUNNING` only when its last byte has arrived, or when its body is too long to keep.
Only then may a thread read the connection's attributes, and the thread changes none of them. Every
other phase has a deadline. If the process has too many connections, or if too many bytes wait for
clients, it closes the connection that has waited longest for its client.
"""

import asyncio
import enum
import itertools
import math
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from gunicorn.asgi.parser import LimitRequestHeaders, ParseError, PythonProtocol  # type: ignore[import-untyped]

from server import answers, limits, refusals

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_PIECE = 256 * 1024  # Bytes; each piece may take `Limits.answer` seconds
_AT_ONCE = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # SO_LINGER: close and drop unsent data


class Phase(enum.Enum):
    """The phases of a connection; the value says what the connection waits for."""

    IDLE = "the first byte of another request"
    HEAD = "the end of a head"
    BODY = "the end of a body"
    RUNNING = "the application"
    SENDING = "the client to take its answer"
    LINGERING = "the client to close"


class Connections:
    """All connections of a process.

    Args:
        bounds: how long to wait for clients, and how much memory to spend.
        keepalive: seconds to wait for another request.
        hand_over: takes a connection with a complete request.
        refused: returns the answer to a request that is refused with this status, for this reason.

    Attributes:
        changed: is called when a connection has ended.
    """

    def __init__(
        self,
        bounds: limits.Limits,
        keepalive: float,
        hand_over: "Callable[[Connection], object]",
        refused: Callable[[int, object], bytes],
    ) -> None:
        self.limits = bounds
        self.keepalive = keepalive
        self.hand_over = hand_over
        self.refused = refused
        self.open: set[Connection] = set()
        self.changed: Callable[[], object] = lambda: None

    def add(self, connection: "Connection") -> None:
        """Count a new connection, or end it if there is no room and none can be made."""
        peers = [other for other in self.open if other.peer and other.peer == connection.peer]
        is_over = bool(self.limits.per_peer) and len(peers) >= self.limits.per_peer
        is_full = is_over or len(self.open) >= self.limits.connections
        if is_full and not self.make_room(peers if is_over else self.open):
            connection.end()
            return
        self.open.add(connection)

    def remove(self, connection: "Connection") -> None:
        """Stop counting a connection."""
        self.open.discard(connection)
        self.changed()

    def expire(self) -> None:
        """End every connection whose deadline has passed."""
        now = time.monotonic()
        for connection in [one for one in self.open if one.deadline <= now]:
            connection.expire()

    def limit_unsent(self) -> None:
        """Enforce the limit of bytes that wait for clients. Shared bytes count once."""
        while self._unsent_bytes() > self.limits.unsent:
            if not self.make_room([one for one in self.open if one.phase is Phase.SENDING]):
                return

    def _unsent_bytes(self) -> int:
        parts = (part for connection in self.open for part in connection.parts)
        buffered: int = sum(
            connection.transport.get_write_buffer_size() for connection in self.open
        )
        return buffered + sum({id(part): len(part) for part in parts}.values())

    def make_room(self, connections: "Iterable[Connection]") -> bool:
        """End the connection that has waited longest for its client; return whether one existed."""
        waiting = [one for one in connections if one.phase is not Phase.RUNNING]
        if waiting:
            min(waiting, key=lambda one: one.since).end()
        return bool(waiting)


class Connection(asyncio.Protocol):
    """One client's connection.

    Attributes:
        peer: the client whose limit the connection counts toward; "" for an uncounted connection.
        since: when the phase began, in the seconds of a monotonic clock.
        deadline: when the phase must end.
        parts: the body of a large answer that is being sent.
    """

    def __init__(self, process: Connections, client: Any) -> None:
        self._process = process
        self._limits = process.limits
        self.transport: Any = None
        self.client = client
        self.address: Any = None
        self.peer = ""
        self.request: Any = PythonProtocol(
            on_headers_complete=self._begin_body,
            on_body=self._body_arrived,
            on_message_complete=self._body_ended,
            # The query may contain a page's address, so the request line may fill the whole head.
            limit_request_line=self._limits.largest_head,
        )
        self.body = bytearray()
        self.is_cut = False  # Whether part of the body was not kept
        self._head = 0  # Bytes of an incomplete head
        self._has_ended = False  # Whether the client sends no more
        self._is_full = False  # Whether the kernel accepts no more
        self._pieces: Iterator[bytes | memoryview] = iter(())
        self._is_kept = False
        self.parts: Sequence[bytes] = ()
        self._begin(Phase.HEAD, self._limits.head)

    def _begin(self, phase: Phase, seconds: float) -> None:
        self.phase = phase
        self.since = time.monotonic()
        self.deadline = self.since + seconds

    # Callbacks from asyncio.

    def connection_made(self, transport: Any) -> None:
        """Wait for the first head."""
        self.transport = transport
        transport.set_write_buffer_limits(high=0)
        self.address = transport.get_extra_info("sockname")
        if self._limits.per_peer and isinstance(self.client, tuple):
            self.peer = limits.peer(self.client[0])
        self._process.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        """Forget the connection. A running request keeps its place until it is answered."""
        if self.phase is not Phase.RUNNING:
            self._forget()

    def _forget(self) -> None:
        """Stop counting the connection, and free its memory at once."""
        self._process.remove(self)
        self.parts, self._pieces, self.body = (), iter(()), bytearray()
        self.request = None  # Break the cycle: the parser refers to this object.

    def data_received(self, data: bytes) -> None:
        """Parse the data, or drop it if it belongs to no request that will be answered."""
        if self.is_cut or self.phase is Phase.LINGERING:
            return
        if self.phase is Phase.IDLE:
            self._begin(Phase.HEAD, self._limits.head)
        elif self.phase is Phase.BODY:
            self.deadline += len(data) / self._limits.rate
        elif self.phase is not Phase.HEAD:
            self.transport.pause_reading()  # The next request must wait for its turn.
        try:
            self._parse(data)
        except (ParseError, ValueError) as error:  # ValueError: a length of thousands of digits
            if not self.is_cut:
                self._refuse(refusals.status_of(error), error)

    def eof_received(self) -> bool:
        """Answer a client that has only ended its sending side."""
        self._has_ended = True
        return self.phase in {Phase.RUNNING, Phase.SENDING}

    def pause_writing(self) -> None:
        """Stop sending until the client has read enough."""
        self._is_full = True
        self._process.limit_unsent()

    def resume_writing(self) -> None:
        """Send the next piece."""
        self._is_full = False
        if self.phase is Phase.SENDING:
            self._begin(Phase.SENDING, self._limits.answer)
            # Send later, because asyncio fails if its transport is closed in this callback.
            asyncio.get_running_loop().call_soon(self._send)

    # Reading the request.

    def _parse(self, data: bytes) -> None:
        is_new = self.phase is Phase.HEAD
        self.request.feed(data)
        if self.phase is Phase.HEAD:
            self._head += len(data)
            if self._head > self._limits.largest_head:
                self._refuse(431, "the head is too long")
        elif is_new and self.phase is Phase.BODY and self._needs_continue():
            self.transport.write(_CONTINUE)

    def _begin_body(self) -> bool:
        fields = itertools.chain(*self.request.headers)
        if len(self.request.path) + sum(map(len, fields)) > self._limits.largest_head:
            raise LimitRequestHeaders("the head is too long")
        self._begin(Phase.BODY, self._limits.body)
        self._head = 0
        self.body = bytearray()
        if (self.request.content_length or 0) > self._limits.largest_body:
            self._hand_over(is_cut=True)
        return False  # False, so that the parser does not skip the body.

    def _body_arrived(self, data: bytes) -> None:
        if self.phase is Phase.BODY:
            self.body += data
            if len(self.body) > self._limits.largest_body:
                self._hand_over(is_cut=True)

    def _body_ended(self) -> None:
        if self.phase is Phase.BODY:
            self._hand_over(is_cut=False)

    def _hand_over(self, *, is_cut: bool) -> None:
        self.is_cut = is_cut
        self._begin(Phase.RUNNING, math.inf)
        self._process.hand_over(self)

    def _needs_continue(self) -> bool:
        expected = (value for name, value in self.request.headers if name == b"expect")
        is_new = self.request.http_version >= (1, 1)
        return is_new and any(value.lower() == b"100-continue" for value in expected)

    # Sending the answer.

    def answer(self, answer: answers.Answer) -> None:
        """Send an answer, and keep the connection for another request or close it."""
        if self.transport.is_closing():
            self._forget()
            return
        has_next = not self._has_ended or bool(self.request.remaining())
        self._is_kept = answer.is_kept and has_next
        self.body = bytearray()
        if sum(map(len, answer.parts)) < _PIECE:
            self._pieces = iter([b"".join((answer.head, *answer.parts))])
        else:
            self.parts = answer.parts
            self._pieces = itertools.chain([answer.head], _pieces(answer.parts))
        self._begin(Phase.SENDING, self._limits.answer)
        self._send()

    def _send(self) -> None:
        if self.transport.is_closing():
            return
        for piece in self._pieces:
            self.transport.write(piece)
            if self._is_full or self.transport.is_closing():
                return
        self.parts = ()
        if self._is_kept:
            self._wait_for_another()
        elif self.is_cut or self.request.remaining():
            self._linger()
        else:
            self.transport.close()

    def _wait_for_another(self) -> None:
        early = self.request.remaining()
        self.request.reset()
        self._begin(Phase.IDLE, self._process.keepalive)
        self.transport.resume_reading()
        if early:
            self.data_received(early)

    # Ending the connection.

    def expire(self) -> None:
        """End the connection at its deadline."""
        if self.phase is Phase.BODY or (self.phase is Phase.HEAD and self._head):
            self._refuse(refusals.TIMEOUT, "the client is too slow")
        else:
            self.end()

    def hurry(self) -> None:
        """Wait only for a moment for a client that has not sent any byte of a request."""
        if self.phase is Phase.IDLE or (self.phase is Phase.HEAD and not self._head):
            self.deadline = min(self.deadline, time.monotonic() + self._limits.linger)

    def end(self) -> None:
        """Close the connection, and drop the rest of an answer."""
        if self.phase is Phase.SENDING:
            raw = self.transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._process.remove(self)
        self.transport.abort()

    def _refuse(self, status: int, why: object) -> None:
        self.transport.write(self._process.refused(status, why))
        self._linger()

    def _linger(self) -> None:
        """Close only our side. Closing both would make a sending client lose the answer."""
        self._begin(Phase.LINGERING, self._limits.linger)
        try:
            self.transport.write_eof()
        except OSError:  # The client is gone
            self.end()
        self.transport.resume_reading()


def _pieces(parts: Sequence[bytes]) -> Iterator[memoryview]:
    for part in parts:
        for start in range(0, len(part), _PIECE):
            yield memoryview(part)[start : start + _PIECE]
