"""One client's connection: what has arrived of its request, and what is still to be sent.

Owns the phases of a connection and their deadlines.

Invariants:

1. Only the event loop changes a connection, except in the phase `RUNNING`: then the connection
   belongs to the answering thread, which ends that phase under `lock`.
2. Every other phase has a deadline, so no client can keep a connection open by doing nothing.
3. A request is `RUNNING` only when its last byte has arrived, or when its body is too long to keep.
"""

import contextlib
import enum
import socket
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from gunicorn.http import errors  # type: ignore[import-untyped]

from server import framing, heads
from server.limits import Limits

Address = tuple[str, int] | str
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LINE = b"\r\n"
_SMALL = 128 * 1024  # bytes; less is copied into one piece rather than sent as several
_PIECES = 512  # in one call; the kernel accepts 1,024


class Phase(enum.Enum):
    """The phases of a connection, by what it waits for."""

    IDLE = "the first byte of another request"
    HEAD = "the end of a head"
    BODY = "the end of a body"
    RUNNING = "the application"
    SENDING = "the client to take its answer"
    LINGERING = "the client to close"
    CLOSED = "nothing"


class Connection:
    """One client's connection.

    Args:
        sock: a non-blocking socket.
        client: the address of the other end.
        address: the address of the socket that accepted it.
        peer: the client whose limit the connection counts toward; "" for an uncounted connection.
    """

    __slots__ = (
        "_chunks", "_left", "_seen", "address", "body", "buffer", "client", "deadline", "events",
        "is_early", "is_kept", "is_unread", "last", "lock", "peer", "phase", "pieces", "request",
        "served", "since", "socket", "unsent", "unsent_size",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, client: Address, address: Any, peer: str) -> None:
        self.socket = sock
        self.client = client
        self.address = address
        self.peer = peer
        self.lock = threading.Lock()
        self.phase = Phase.HEAD
        self.since = self.deadline = 0.0
        self.events = 0  # the events that the loop watches for
        self.served = 0  # requests
        self.buffer = bytearray()
        self.request: Any = None
        self.body: bytes | bytearray = b""
        self.is_unread = False  # whether part of the body has not been read
        self.is_early = False  # whether more arrived while the application ran
        self.is_kept = False  # whether another request may follow this one
        self.last = 0.0  # the deadline for the client to accept the whole answer
        self.pieces: Sequence[bytes] = ()  # of the last answer
        self.unsent: deque[memoryview] = deque()
        self.unsent_size = 0
        self._chunks: framing.Chunks | None = None
        self._left = 0  # bytes of a body whose length is known
        self._seen = 0  # bytes of the buffer already searched for the end of a head

    def begin(self, phase: Phase, now: float, seconds: float) -> None:
        """Enter a phase that may take `seconds`."""
        self.deadline = now + seconds
        self.since = now
        self.phase = phase

    def advance(self, cfg: Any, limits: Limits, now: float) -> bool:
        """Parse the bytes that have arrived into a request; return whether it is complete.

        Raises:
            ParseException: these bytes are not a request.
        """
        is_new = self.request is None
        if is_new and not self._take_head(cfg, limits, now):
            return False
        if self._take_body():
            self.served += 1
            return True
        if is_new and heads.expects_continue(self.request):
            with contextlib.suppress(OSError):
                self.socket.send(_CONTINUE)
        return False

    def _take_head(self, cfg: Any, limits: Limits, now: float) -> bool:
        end = framing.head_end(self.buffer, self._seen)
        if (end if end >= 0 else len(self.buffer)) > limits.largest_head:
            raise _too_long(self.buffer, limits.largest_head)
        if end < 0:
            self._seen = len(self.buffer)
            if self.phase is Phase.IDLE and self.buffer:
                self.begin(Phase.HEAD, now, limits.head)
            return False
        head = bytes(self.buffer[:end])
        del self.buffer[:end]
        self._seen = 0
        self.request = heads.parse(cfg, head, self.client, self.served + 1)
        self._expect_body(limits, now)
        return True

    def _expect_body(self, limits: Limits, now: float) -> None:
        length = heads.length(self.request)
        if length is None:
            self._chunks = framing.Chunks(self._check_trailers, limits.largest_body)
        else:
            self._chunks = None
            self.is_unread = length > limits.largest_body
            self._left = 0 if self.is_unread else length
        self.begin(Phase.BODY, now, limits.body)

    def _take_body(self) -> bool:
        if self._chunks is not None:
            is_whole = self._chunks.take(self.buffer)
            self.body, self.is_unread = self._chunks.body, self._chunks.is_cut
            return is_whole
        if len(self.buffer) < self._left:
            return False
        self.body = bytes(self.buffer[: self._left])
        del self.buffer[: self._left]
        return True

    def _check_trailers(self, data: bytes) -> None:
        self.request.parse_headers(data, from_trailer=True)

    def finish_request(self) -> None:
        """Drop the request that was answered."""
        self.request, self.body, self._chunks = None, b"", None

    def send(self, parts: Sequence[bytes]) -> None:
        """Send what the client accepts at once, and keep the rest as unsent.

        Raises:
            OSError: the client is gone.
        """
        size = sum(map(len, parts))
        self.pieces = [b"".join(parts)] if size < _SMALL else [part for part in parts if part]
        self.unsent.extend(map(memoryview, self.pieces))
        self.unsent_size = size
        self.send_more()
        if not self.unsent:
            self.pieces = ()

    def send_more(self) -> None:
        """Send what the client accepts now.

        Raises:
            OSError: the client is gone.
        """
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                pieces = [self.unsent[place] for place in range(min(len(self.unsent), _PIECES))]
                self._note_sent(self.socket.sendmsg(pieces))

    def drop_unsent(self) -> None:
        """Drop everything that is not sent yet."""
        self.pieces = ()
        self.unsent.clear()
        self.unsent_size = 0

    def _note_sent(self, sent: int) -> None:
        self.unsent_size -= sent
        while sent:
            piece = self.unsent.popleft()
            if len(piece) > sent:
                self.unsent.appendleft(piece[sent:])
                return
            sent -= len(piece)


def _too_long(buffer: bytearray, most: int) -> Exception:
    if buffer.find(_LINE, len(_LINE), most) < 0:
        found: Exception = errors.LimitRequestLine(len(buffer), most)
    else:
        found = errors.LimitRequestHeaders("the head is too long")
    return found
