"""Read stored comments and threads as they are, with damaged values too."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from comments.domain import records, sorthash
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion


class StoredComment(msgspec.Struct, frozen=True, gc=False):
    """A comment's row.

    `thread_key` is the key name of its thread. Times are None if they are missing.
    """

    id: str
    site: str
    thread_key: str
    thread: str
    reply_to: str | None
    parent: str | None
    level: int
    number: int
    sort_hash: str
    slug: str
    shape: int
    status: str
    body: str
    html: str
    renderer: str
    author_name: str
    author_website: str
    author_id: str
    author_email: str
    created: datetime | None
    edited: datetime | None
    judged: datetime | None
    up: int
    down: int
    score: int
    cast_up: int
    cast_down: int
    is_pinned: bool
    revision: int


class StoredThread(msgspec.Struct, frozen=True):
    """A thread's row. `named_by` is None in rows from releases that did not store it."""

    title: str
    url: str
    state: str
    named_by: str | None
    own: tuple[str, ...]
    shape: int
    scheme: str
    pins: tuple[str, ...]
    created: datetime | None

    def tree_scheme(self, site: sorthash.Scheme) -> sorthash.Scheme:
        """Return the scheme of the thread's sort hashes, given its site's scheme."""
        try:
            return sorthash.decode_scheme(self.scheme) if self.scheme else site
        except (ValueError, TypeError):
            return site


class StoredBatch(msgspec.Struct, frozen=True):
    """Threads and comments as of one moment, with None for missing ones."""

    threads: tuple[StoredThread | None, ...]
    comments: tuple[StoredComment | None, ...]


def read(threads: Sequence[records.ThreadName], comments: Sequence[str]) -> StoredBatch:
    """Read threads and comments as of one moment.

    Raises:
        errors.Overloaded: the store did not respond in time.
    """
    keys = [
        *((("Thread", comment_rows.thread_key_name(name)),) for name in threads),
        *((("Comment", comment_id),) for comment_id in comments),
    ]
    found = transactions.at_one_moment(lambda: reads.read(keys))
    return StoredBatch(
        tuple(message and _thread(message) for message in found[: len(threads)]),
        tuple(message and _comment(message) for message in found[len(threads) :]),
    )


def count_comments(site: str) -> int:
    """Count all comments of a site."""
    # These queries need no other indexes than those that the site's queue and feed use. The
    # embedded engine would make an index of `site` alone for ever.
    return sum(
        reads.count(
            reads.Query(
                "Comment",
                where=(("site", "=", site), ("status", "=", status.value)),
                order=("-created", "revision"),
            )
        )
        for status in records.Status
    )


def count_threads(site: str) -> int:
    """Count all threads of a site."""
    return reads.count(reads.Query("Thread", where=(("site", "=", site),), order=("-created",)))


def _thread(message: Any) -> StoredThread:
    values = message.properties
    named_by = values["named_by"]
    is_known = named_by.WhichOneof("value_type") == "string_value"
    return StoredThread(
        title=values["title"].string_value,
        url=values["url"].string_value,
        state=values["state"].string_value,
        named_by=named_by.string_value if is_known else None,
        own=conversion.texts(values["own"]),
        shape=values["shape"].integer_value,
        scheme=values["scheme"].string_value,
        pins=conversion.texts(values["pins"]),
        created=conversion.stored_time(message, "created"),
    )


def _comment(message: Any) -> StoredComment:
    values = message.properties
    return StoredComment(
        id=message.key.path[-1].name,
        site=values["site"].string_value,
        thread_key=values["thread"].string_value,
        thread=values["thread_id"].string_value,
        reply_to=values["reply_to"].string_value or None,
        parent=values["parent"].string_value or None,
        level=values["level"].integer_value,
        number=values["number"].integer_value,
        sort_hash=values["sort_hash"].string_value,
        slug=values["slug"].string_value,
        shape=values["shape"].integer_value,
        status=values["status"].string_value,
        body=values["body"].string_value,
        html=values["html"].string_value,
        renderer=values["renderer"].string_value,
        author_name=values["author_name"].string_value,
        author_website=values["author_website"].string_value,
        author_id=values["author_id"].string_value,
        author_email=values["author_email"].string_value,
        created=conversion.stored_time(message, "created"),
        edited=conversion.stored_time(message, "edited"),
        judged=conversion.stored_time(message, "judged"),
        up=values["up"].integer_value,
        down=values["down"].integer_value,
        score=values["score"].integer_value,
        cast_up=values["cast_up"].integer_value,
        cast_down=values["cast_down"].integer_value,
        is_pinned=values["pinned"].boolean_value,
        revision=values["revision"].integer_value,
    )
