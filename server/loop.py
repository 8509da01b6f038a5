"""The event loop of a process: accepts connections, reads requests, sends answers, keeps deadlines.

Owns every connection and the selector. It hands complete requests over to threads, which return
answered connections with `returned`; any thread may call it.

Invariants:

1. The loop waits only for events, and for at most `_TICK` seconds at a time.
2. A connection that waits for its client is closed at its deadline, or earlier if the process needs
   the room. The connection that has waited longest is closed first.
3. At most `limits.unsent` bytes of answers wait for clients. Beyond that, the client that has
   accepted nothing for the longest time loses its answer.
"""

import contextlib
import os
import selectors
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]

from server import connection_counts, holding, limits, listening, refusals
from server.connections import Address, Connection, Phase

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_TICK = 0.25  # seconds between two checks of the deadlines
_PIECE = 64 * 1024
_ACCEPTED = 64  # connections accepted in a row before others are served
_AT_ONCE = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # SO_LINGER: close and drop unsent data
_HAND_OVER = Callable[[Connection], object]


class Loop:
    """The connections of a process.

    Args:
        cfg: gunicorn's settings.
        bounds: how long to wait for clients.
        pipe: two ends of a pipe that wakes the loop. Signals may write to it, too.
        hand_over: takes a connection with a complete request.
        refusal: returns the answer, as bytes, to a request that is refused with this error or
            status.
        own: this process's published number of connections.
    """

    def __init__(
        self,
        cfg: Any,
        bounds: limits.Limits,
        pipe: tuple[int, int],
        hand_over: _HAND_OVER,
        refusal: Callable[[Exception | int], bytes],
        own: connection_counts.OwnCount,
    ) -> None:
        self._cfg = cfg
        self._limits = bounds
        self._woken, self._waking = pipe
        self._hand_over = hand_over
        self._refusal = refusal
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._woken, _READ, self._empty_pipe)
        self._listening = listening.Listening(self._selector, own, bounds.others)
        self._connections: set[Connection] = set()
        self._peers: Counter[str] = Counter()
        self._returned: deque[Connection] = deque()
        self._held = holding.Holding()
        self._looked = 0.0

    def __len__(self) -> int:
        return len(self._connections)

    def listen(self, listener: Any) -> None:
        """Start accepting connections."""
        listener.settimeout(0.0)
        with contextlib.suppress(OSError, AttributeError):  # not TCP, or not Linux
            # After that time, the kernel also drops unsent data of a closed connection.
            patience = int(self._limits.answer * 1_000)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)
        address = listener.getsockname()
        self._listening.add(listener, lambda _events: self._accept(listener, address))
        self._listening.publish(len(self))

    def deafen(self, listener: Any) -> None:
        """Accept no more connections."""
        self._listening.remove(listener)

    def turn(self) -> bool:
        """Process all events; return whether the deadlines were checked."""
        for key, events in self._selector.select(self._listening.longest_wait(_TICK)):
            key.data(events)
        self._listening.resume()
        while self._returned:
            self._take_back(self._returned.popleft())
        now = time.monotonic()
        if now - self._looked < _TICK:
            return False
        self._looked = now
        self._listening.publish(len(self))
        for connection in list(self._overdue(now)):
            self._end_overdue(connection)
        return True

    def returned(self, connection: Connection) -> None:
        """Give a connection back to the loop, from any thread."""
        self._returned.append(connection)
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes the loop as well
            os.write(self._waking, b".")

    def hurry(self, seconds: float) -> None:
        """Wait at most `seconds` more for clients that have not sent any byte of a request."""
        end = time.monotonic() + seconds
        for each in self._connections:
            if each.phase is Phase.IDLE or (each.phase is Phase.HEAD and not each.buffer):
                each.deadline = min(each.deadline, end)

    def close(self) -> None:
        """Close every connection."""
        for connection in list(self._connections):
            self._close(connection)

    def adopt(self, sock: socket.socket, client: Address, address: Any) -> None:
        """Serve a connection, if there is room for it."""
        sock.settimeout(0.0)
        peer = ""
        if self._limits.per_peer and isinstance(client, tuple):
            peer = limits.peer(client[0])
        has_room = len(self._connections) < self._limits.connections or self._make_room()
        if peer and self._peers[peer] >= self._limits.per_peer:
            has_room = self._make_room(peer)
        if not has_room:
            sock.close()
            return
        connection = Connection(sock, client, address, peer)
        connection.begin(Phase.HEAD, time.monotonic(), self._limits.head)
        self._connections.add(connection)
        self._listening.publish(len(self))
        self._peers[peer] += 1
        self._watch(connection, _READ)

    def _accept(self, listener: Any, address: Any) -> None:
        for _ in range(_ACCEPTED):
            if self._listening.leaves(len(self)):
                return
            try:
                sock, client = listener.accept()
            except BlockingIOError:
                self._listening.none_waits()
                return
            except OSError:  # the client is gone, or there are no more files
                self._make_room()
                return
            self.adopt(sock, client, address)

    def _make_room(self, peer: str = "") -> bool:
        """Close the connection that has waited longest for its client; False if none waits."""
        waiting = [
            each
            for each in self._connections
            if each.phase is not Phase.RUNNING and (not peer or each.peer == peer)
        ]
        if waiting:
            self._close(min(waiting, key=lambda each: each.since))
        return bool(waiting)

    def _on_client(self, connection: Connection, events: int) -> None:
        if connection.phase is Phase.CLOSED:  # an earlier event closed it
            return
        if events & _WRITE:
            self._send_more(connection)
            return
        with connection.lock:
            if connection.phase is Phase.RUNNING:
                # This is either the next request or the end of the connection. Both must wait until
                # the answer is sent.
                connection.is_early = True
                self._watch(connection, 0)
                return
        self._receive(connection)

    def _receive(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(connection)
        elif connection.phase is not Phase.LINGERING:
            connection.buffer += data
            if connection.phase is Phase.BODY:
                connection.deadline += len(data) / self._limits.rate
            self._advance(connection)

    def _advance(self, connection: Connection) -> None:
        try:
            is_complete = connection.advance(self._cfg, self._limits, time.monotonic())
        except ParseException as error:
            self._refuse(connection, error)
            return
        if is_complete:
            connection.phase = Phase.RUNNING
            self._hand_over(connection)

    def _refuse(self, connection: Connection, reason: Exception | int) -> None:
        try:
            connection.send([self._refusal(reason)])
        except OSError:
            self._close(connection)
            return
        connection.drop_unsent()
        self._linger(connection)

    def _take_back(self, connection: Connection) -> None:
        connection.is_early = False
        now = time.monotonic()
        if not connection.unsent:
            self._after_answer(connection, now)
            return
        connection.last = now + self._limits.answer
        connection.begin(Phase.SENDING, now, self._limits.answer)
        self._held.hold(connection.pieces)
        self._watch(connection, _WRITE)
        while self._held.size > self._limits.unsent:
            sending = (each for each in self._connections if each.phase is Phase.SENDING)
            self._close(min(sending, key=lambda each: each.since))

    def _send_more(self, connection: Connection) -> None:
        before = connection.unsent_size
        try:
            connection.send_more()
        except OSError:
            self._close(connection)
            return
        sent = before - connection.unsent_size
        now = time.monotonic()
        if not connection.unsent:
            self._held.release(connection.pieces)
            connection.drop_unsent()
            connection.phase = Phase.IDLE
            self._after_answer(connection, now)
        elif sent:
            connection.last += sent / self._limits.rate
            seconds = min(self._limits.answer, connection.last - now)
            connection.begin(Phase.SENDING, now, seconds)

    def _after_answer(self, connection: Connection, now: float) -> None:
        if connection.is_kept:
            connection.begin(Phase.IDLE, now, self._cfg.keepalive)
            self._watch(connection, _READ)
            if connection.buffer:
                self._advance(connection)
        elif connection.is_unread or connection.buffer:
            self._linger(connection)
        else:
            self._close(connection)

    def _linger(self, connection: Connection) -> None:
        """Close only our side. Closing both would take the answer from a sending client."""
        try:
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)
            return
        connection.buffer.clear()
        connection.begin(Phase.LINGERING, time.monotonic(), self._limits.linger)
        self._watch(connection, _READ)

    def _overdue(self, now: float) -> Iterator[Connection]:
        # Check the phase first: a thread sets the next deadline before it ends RUNNING.
        for each in self._connections:
            if each.phase is not Phase.RUNNING and each.deadline <= now:
                yield each

    def _end_overdue(self, connection: Connection) -> None:
        is_asking = connection.phase is Phase.HEAD and connection.buffer
        if is_asking or connection.phase is Phase.BODY:
            self._refuse(connection, refusals.TIMEOUT)
        else:
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        """Close a connection.

        Unless the phase is `SENDING`, the client still gets the bytes in the kernel's buffer.
        """
        if connection.phase is Phase.CLOSED:
            return
        if connection.phase is Phase.SENDING:
            self._held.release(connection.pieces)
            with contextlib.suppress(OSError):
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._watch(connection, 0)
        connection.phase = Phase.CLOSED
        connection.drop_unsent()
        self._connections.discard(connection)
        self._listening.publish(len(self))
        self._peers[connection.peer] -= 1
        if not self._peers[connection.peer]:
            del self._peers[connection.peer]
        connection.socket.close()

    def _watch(self, connection: Connection, events: int) -> None:
        if events == connection.events:
            return
        if not connection.events:
            self._selector.register(
                connection.socket, events, lambda found: self._on_client(connection, found)
            )
        elif not events:
            self._selector.unregister(connection.socket)
        else:
            key = self._selector.get_key(connection.socket)
            self._selector.modify(connection.socket, events, key.data)
        connection.events = events

    def _empty_pipe(self, _events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._woken, _PIECE):
                pass
