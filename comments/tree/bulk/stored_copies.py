"""Recognize comments that are the same: those with the same author, time and text.

An import does not add a comment that its page has already from another source, such as another
system or this service, and a merge of two pages hides such a comment. Times are compared to the
second, and texts without their markup and white space, because formats and systems differ in both.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from comments.domain import records
from comments.domain.text import sanitizing
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion

_DIGEST = 16  # Bytes


def content(author: str, created: datetime, html: str) -> bytes:
    """Return a digest that is equal for comments that are the same; `author` is a name or an id."""
    text = " ".join(sanitizing.plain_text(html).split()) or html
    parts = author, created.replace(microsecond=0), text
    return hashlib.blake2b(msgspec.msgpack.encode(parts), digest_size=_DIGEST).digest()


def find(
    name: records.ThreadName, comments: Sequence[records.ImportedComment], taken: Collection[str]
) -> list[str]:
    """Return, for each comment, the id of the same comment in a stored thread, or "".

    Every stored comment is returned at most once, and those in `taken` never. This function reads
    the comments of the thread between the first and the last of the given times.
    """
    times = [comment.created.replace(microsecond=0) for comment in comments]
    where = (
        ("thread", "=", comment_rows.thread_key_name(name)),
        ("created", ">=", min(times)),
        ("created", "<=", max(times).replace(microsecond=999_999)),
    )
    stored: dict[bytes, list[str]] = defaultdict(list)

    def read() -> None:
        stored.clear()
        for is_listed in (True, False):
            conditions = (*where, ("listed", "=", is_listed))
            query = reads.Query("Comment", conditions, order=("created", "sort_hash"))
            for row in map(conversion.comment_from_message, reads.fetch(query)):
                if row.html and row.id not in taken:
                    for author in {row.author.name, row.author.id}:
                        stored[content(author, row.created, row.html)].append(row.id)

    transactions.at_one_moment(read)
    used = {""}
    copies = []
    for comment in comments:
        authors = (comment.author.name, comment.author.id) if comment.html else ()
        keys = [content(author, comment.created, comment.html) for author in authors if author]
        same = (key for digest in keys for key in stored.get(digest, ()) if key not in used)
        copies.append(next(same, ""))
        used.add(copies[-1])
    return copies
