"""Read the stored tree of a thread as a table: each comment with its place and its bucket.

The table is for operators and contains comments of every status. It shows the values as they are
stored and derives only the padded hash, so damage is visible. This module writes nothing. A table
costs one read for each comment, one for the directory and one for each bucket.
"""

from typing import Any

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.reading.materialized import buckets, directories
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows, conversion

TAIL = "tail"
SECONDS = 240.0  # Seconds for reading one thread; the service aborts transactions after 270 s.


class TreeLine(msgspec.Struct, frozen=True):
    """One stored comment.

    - `padded`: the hash with a zero segment for each missing level; "" if the stored hash is not a
      hash of the site's scheme.
    - `children`: the child counter, which also counts held and removed replies.
    - `parent`, `reply_to`: ids of comments.
    - `bucket`: the key of the bucket that contains the comment, `TAIL` if it is in the tail of the
      directory, and "" if no reader gets it from the directory.
    - `waiting`: whether the comment has a change that is not compacted yet.
    """

    padded: str
    stored: str
    slug: str
    level: int
    number: int
    children: int
    id: str
    parent: str | None
    reply_to: str | None
    status: records.Status
    listed: bool
    bucket: str
    waiting: bool
    author: str


class TreeTable(msgspec.Struct, frozen=True):
    """A thread with all its comments in reading order, and the keys of its buckets in order."""

    thread: records.Thread
    lines: tuple[TreeLine, ...]
    buckets: tuple[str, ...]


def of(scheme: sorthash.Scheme, name: records.ThreadName) -> TreeTable:
    """Read the table of a thread at one moment.

    Raises:
        errors.NotFound: there is no such thread.
        errors.Overloaded: reading takes longer than `SECONDS`.
    """
    with connection.within(SECONDS):
        return transactions.at_one_moment(lambda: _read_table(scheme, name))


def _read_table(scheme: sorthash.Scheme, name: records.ThreadName) -> TreeTable:
    thread = reads.get(comment_rows.thread_key(name))
    if thread is None:
        raise errors.NotFound("thread", name.id)
    query = reads.Query(
        "Comment",
        where=(("thread", "=", comment_rows.thread_key_name(name)),),
        order=("sort_hash",),
    )
    rows = list(reads.fetch(query))
    directory = directories.load_directory(name)
    places = _places(name, directory)
    own = conversion.scheme_of(thread, scheme)
    lines = (_line(own, directory, places, row) for row in rows)
    keys = tuple(line.key for line in directory.lines)
    return TreeTable(conversion.thread_record(thread), tuple(lines), keys)


def _places(name: records.ThreadName, directory: buckets.Directory) -> dict[str, str]:
    """Return, by id, the place of each comment in the directory."""
    keys = [line.key for line in directory.lines]
    places = {
        entry.id: key
        for key, bucket in zip(keys, directories.load_buckets(name, keys), strict=True)
        if bucket is not None
        for entry in bucket.entries
    }
    # Rows in the tail override rows in buckets.
    places |= {mark.id: TAIL if mark.json else "" for mark in directory.content.tail}
    return places


def _line(
    scheme: sorthash.Scheme, directory: buckets.Directory, places: dict[str, str], message: Any
) -> TreeLine:
    row = conversion.comment_from_message(message)
    is_flagged = message.properties["unfolded"].boolean_value
    return TreeLine(
        padded=_pad(scheme, row.sort_hash),
        stored=row.sort_hash,
        slug=row.slug,
        level=row.level,
        number=row.number,
        children=row.child_count,
        id=row.id,
        parent=row.parent,
        reply_to=row.reply_to,
        status=row.status,
        listed=row.listed,
        bucket=places.get(row.id, ""),
        waiting=is_flagged and not directory.has_compacted(row.id, row.revision),
        author=row.author.name,
    )


def _pad(scheme: sorthash.Scheme, sort_hash: str) -> str:
    try:
        sorthash.to_numbers(scheme, sort_hash)
    except sorthash.BadSortHash:
        return ""
    return sorthash.pad(scheme, sort_hash)
