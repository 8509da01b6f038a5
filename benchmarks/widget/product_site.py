"""Flatthread's site with conversations, on an open engine."""

import functools
import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime

from benchmarks.widget.sample_talks import Line
from comments import config
from comments.domain import records
from comments.domain.text import rendering
from comments.jobs.integrity import recount
from comments.moderation import decisions
from comments.reading.compaction import compactor
from comments.sites import site_settings
from comments.store import transactions
from comments.store.models import comment_rows
from comments.tree import bulk_append, values

SITE = "demo"
SCHEME = config.sorthash.Scheme()
_BATCH = 100  # comments in one transaction
_OWNER = records.Actor("owner", "Owner")


def add(origins: Iterable[str], now: datetime) -> None:
    """Register the site of some origins."""
    site_settings.add(SITE, list(origins), scheme=SCHEME, now=now)


def store(thread: str, lines: Sequence[Line], now: datetime) -> None:
    """Store a conversation as an import does, compacted and counted, with its pins."""
    name, ids = records.ThreadName(SITE, thread), [_id(thread, n) for n in range(len(lines))]
    nodes = [
        records.ImportedComment(
            id=ids[place],
            reply_to=None if line.parent is None else ids[line.parent],
            author=records.Author(line.name, is_staff=line.is_staff),
            body=line.body,
            html=rendering.render_markdown(line.body),
            renderer=rendering.RENDERER,
            status=records.Status.APPROVED,
            created=line.created,
            source="sample",
            up=line.up,
            down=line.down,
        )
        for place, line in enumerate(lines)
    ]

    def append(some: Sequence[records.ImportedComment]) -> None:
        batch = bulk_append.append_imported(SCHEME, [values.ImportedThread(name, some)], now=now)
        transactions.apply(*batch.writes)

    for start in range(0, len(nodes), _BATCH):
        transactions.transaction(functools.partial(append, nodes[start : start + _BATCH]))
    for comment_id, line in zip(ids, lines, strict=True):
        if line.is_pinned:
            decisions.decide(SITE, comment_id, decisions.Verb.PIN, _OWNER, now=now)
    compactor.compact(SCHEME, name)
    recount.thread(name, tell=lambda _number: None, fixes=True)


def _id(thread: str, place: int) -> str:
    return comment_rows.comment_id(hashlib.sha256(f"{thread} {place}".encode()).digest())
