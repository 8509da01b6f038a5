"""Find posts that an export contains twice because their author clicked twice.

A post is doubled if it is at most `WINDOW` later than a post with the same author, text, state,
thread and parent. The same short text ("+1") at another time counts as a different post. Posts
without an author or a text, deleted posts, and posts whose times seem to be mere dates never count
as doubled. A post that has votes, an edit or a pin is never left out.
"""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime, time, timedelta

import msgspec

from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.checking import write_order

WINDOW = timedelta(seconds=10)
_DIGEST = 8  # Bytes; a collision matters only if parent and time are the same


class DoubledPosts:
    """Collects the data that `find` needs to find the doubled posts of one file."""

    def __init__(self) -> None:
        self._likeness: dict[str, bytes] = {}
        self._valued: set[str] = set()

    def add(self, comment: import_source.SourceComment) -> None:
        """Collect a comment."""
        digest = _likeness(comment)
        if digest is None:
            return
        self._likeness[comment.id] = digest
        if comment.up or comment.down or comment.pinned or comment.edited is not None:
            self._valued.add(comment.id)

    def differs(self, comment: import_source.SourceComment) -> bool:
        """Return whether a comment has other content than the collected one with the same id."""
        return self._likeness.get(comment.id) != _likeness(comment)

    def find(
        self, nodes: Iterable[write_order.Node]
    ) -> list[tuple[write_order.Node, write_order.Node]]:
        """Return the doubled posts, each with the earlier post that it repeats."""
        doubles: dict[str, tuple[write_order.Node, write_order.Node]] = {}
        latest: dict[tuple[str, str | None, bytes], write_order.Node] = {}
        for node in sorted(nodes, key=lambda node: node.order):
            likeness = self._likeness.get(node.id)
            if likeness is None:
                continue
            above = doubles.get(node.answers or "")
            key = node.thread, node.answers if above is None else above[1].id, likeness
            first = latest.get(key)
            is_near = first is not None and node.created - first.created <= WINDOW
            if first is not None and is_near and node.id not in self._valued:
                doubles[node.id] = node, first
            else:
                latest[key] = node
        return list(doubles.values())

    def on_other_pages(
        self, nodes: Iterable[write_order.Node]
    ) -> Iterator[tuple[write_order.Node, str]]:
        """Yield each post that an earlier page contains too, with the same time, and that page."""
        first: dict[tuple[bytes, datetime], str] = {}
        for node in nodes:
            likeness = self._likeness.get(node.id)
            if likeness is not None:
                page = first.setdefault((likeness, node.created), node.thread)
                if page != node.thread:
                    yield node, page


def _likeness(comment: import_source.SourceComment) -> bytes | None:
    """Return a digest that doubled posts share, or None for a post that cannot be doubled."""
    author = comment.account, comment.email.lower(), comment.name
    is_known = any(part.strip() for part in author) and bool(comment.body.strip())
    if not is_known or comment.status is Status.RETRACTED or comment.created.time() == time():
        return None
    content = (*author, comment.website, comment.status.value, comment.body)
    return hashlib.blake2b(msgspec.msgpack.encode(content), digest_size=_DIGEST).digest()
