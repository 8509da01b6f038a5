"""Read the stored tree of a thread as a table: each comment with its place and its bucket.

The table is for operators and contains comments of every status. It shows the values as they are
stored and derives only the padded hash, so damage is visible. This module writes nothing. A table
costs one read for each comment, one for the directory and one for each bucket. A page of a table
costs as much as its comments and their buckets.
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
    """A thread with its comments in reading order, and the keys of all its buckets in order.

    A page of a table has only some of the comments. `after` is the hash after which the next page
    begins, and None if there is no other page.
    """

    thread: records.Thread
    lines: tuple[TreeLine, ...]
    buckets: tuple[str, ...]
    after: str | None = None


def of(
    scheme: sorthash.Scheme, name: records.ThreadName, *, after: str = "", most: int | None = None
) -> TreeTable:
    """Read the table of a thread at one moment: all of it, or a page of at most `most` comments.

    A page begins after the stored hash `after`, and reads only the buckets of its comments. It
    shows no bucket for a comment whose stored hash is not the one in the bucket.

    Raises:
        errors.NotFound: there is no such thread.
        errors.Overloaded: reading takes longer than `SECONDS`.
    """
    with connection.within(SECONDS):
        return transactions.at_one_moment(lambda: _read_table(scheme, name, after, most))


def _read_table(
    scheme: sorthash.Scheme, name: records.ThreadName, after: str, most: int | None
) -> TreeTable:
    thread = reads.get(comment_rows.thread_key(name))
    if thread is None:
        raise errors.NotFound("thread", name.id)
    query = reads.Query(
        "Comment",
        where=(
            ("thread", "=", comment_rows.thread_key_name(name)),
            *((("sort_hash", ">", after),) if after else ()),
        ),
        order=("sort_hash",),
        limit=None if most is None else most + 1,
    )
    stored_rows = list(reads.fetch(query))
    rows = stored_rows[:most]
    directory = directories.load_directory(name)
    own = conversion.scheme_of(thread, scheme)
    hashes = [row.properties["sort_hash"].string_value for row in rows]
    places = _places(name, directory, None if most is None else hashes)
    lines = (_line(own, directory, places, row) for row in rows)
    keys = tuple(line.key for line in directory.lines)
    rest = hashes[-1] if len(stored_rows) > len(rows) else None
    return TreeTable(conversion.thread_record(thread), tuple(lines), keys, rest)


def _places(
    name: records.ThreadName, directory: buckets.Directory, hashes: list[str] | None
) -> dict[str, str]:
    """Return, by id, the places of comments in the directory: of all, or of those in a page."""
    keys = [
        line.key
        for line in directory.lines
        if hashes is None or (hashes and line.first <= hashes[-1] and line.last >= hashes[0])
    ]
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
