"""List a website's authors with approved comments by the score of their comments, best first.

This module owns the pagination of this list. Scores and numbers come from the Standings, which
reflect events within about a second. A Standing contains no name, so names are read from one
comment per author, in one lookup. The name is the current name in that comment, or empty if the
comment was retracted.

No public response contains an author's id, and a cursor contains only a digest of the id.
Moderators see the id in `author_list_page`. The id identifies a comment's author but gives no
access to anything.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from comments import errors
from comments.domain import records
from comments.domain.crypto import cursors
from comments.store import reads
from comments.store.models import comment_rows, conversion
from comments.tree.counters import totals

MAX_LIMIT = 100


@dataclasses.dataclass(frozen=True, slots=True)
class LeaderboardEntry:
    """An author, with the number of their approved comments and their score."""

    author: records.Author
    score: int
    comments: int


@dataclasses.dataclass(frozen=True, slots=True)
class LeaderboardPage:
    """A page of authors. `cursor` leads to the next page; it is None at the end."""

    authors: tuple[LeaderboardEntry, ...]
    cursor: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class AuthorListPage:
    """A page of authors as moderators see them: their names and their Standings."""

    standings: tuple[tuple[records.Author, totals.AuthorTotals], ...]
    cursor: str | None


def best(site: str, *, limit: int, cursor: str | None, secret: str) -> LeaderboardPage:
    """Read a page of authors with one query and one lookup, plus one query if there is a cursor.

    Raises:
        errors.BadInput: the limit is outside 1 to `MAX_LIMIT`.
        errors.BadCursor: the cursor belongs to a different listing, or this service did not
            sign it.
    """
    page = author_list_page(site, limit=limit, cursor=cursor, secret=secret)
    return LeaderboardPage(
        tuple(
            LeaderboardEntry(
                name, standing.score, standing.numbers.get(records.Status.APPROVED.value, 0)
            )
            for name, standing in page.standings
        ),
        page.cursor,
    )


def author_list_page(site: str, *, limit: int, cursor: str | None, secret: str) -> AuthorListPage:
    """Read a page of authors for moderators, with ids and all numbers.

    Raises:
        errors.BadInput, errors.BadCursor: see `best`.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise errors.BadInput("limit", "out-of-range", minimum=1, maximum=MAX_LIMIT)
    listing = cursors.label("authors", site)
    after = None
    if cursor is not None:
        score, alias = cursors.unseal(cursor, listing, secret)
        after = (int(score), alias)
    standings = totals.best_authors(site, limit + 1, after=after)
    shown = standings[:limit]
    last = (str(shown[-1].score), shown[-1].alias) if len(standings) > limit else None
    return AuthorListPage(
        tuple(
            zip(
                author_names(site, [(standing.author, standing.comment) for standing in shown]),
                shown,
                strict=True,
            )
        ),
        None if last is None else cursors.seal(last, listing, secret),
    )


def author_names(site: str, authors: Sequence[tuple[str, str]]) -> Iterator[records.Author]:
    """Yield the names of authors, each given by id and by the id of one of their comments.

    If that comment is missing or retracted, the name comes from another comment. The id of the
    comment may be empty.
    """
    keys = [comment_rows.comment_key(comment_id) for _, comment_id in authors if comment_id]
    comments = {
        message.key.path[-1].name: conversion.comment_from_message(message)
        for message in reads.read(keys)
        if message is not None
    }
    for author, comment_id in authors:
        comment = comments.get(comment_id)
        if comment is None or comment.author.id != author or comment.is_tombstone:
            comment = _comment_of(site, author)
        yield records.Author("") if comment is None else comment.author


def _comment_of(site: str, author: str) -> records.Comment | None:
    query = reads.Query(
        "Comment",
        where=(
            ("author_id", "=", author),
            ("site", "=", site),
            ("status", "=", records.Status.APPROVED.value),
        ),
        limit=1,
    )
    return next(map(conversion.comment_from_message, reads.fetch(query)), None)
