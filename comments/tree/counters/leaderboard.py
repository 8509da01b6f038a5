"""The authors of a website, best first: those with an approved comment, by the score of theirs.

Owns what a page of them is. Scores and numbers are those of the Standings, which follow from events
within a second or so. A Standing holds no name: names come from a comment of each author, read in
one look-up, and so say what that comment says now, and nothing when it was taken back.

An author's id leaves the server in no public answer; a cursor holds a digest of it. Moderators are
told it (`known`): it says who wrote what, and is no key to anything.
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
class Ranked:
    """An author with what he has: approved comments, and the votes on them."""

    author: records.Author
    score: int
    comments: int


@dataclasses.dataclass(frozen=True, slots=True)
class LeaderboardPage:
    """A run of authors; `cursor` continues it and is None at the end."""

    authors: tuple[Ranked, ...]
    cursor: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """A run of authors as moderators see them: what they call themselves, and their Standings."""

    standings: tuple[tuple[records.Author, totals.Standing], ...]
    cursor: str | None


def best(site: str, *, limit: int, cursor: str | None, secret: str) -> LeaderboardPage:
    """A page of authors: one query and one look-up, and a query more behind a cursor.

    Raises:
        errors.BadInput: a limit outside 1 .. `MAX_LIMIT`.
        errors.BadCursor: a cursor of another listing, or none of ours.
    """
    found = known(site, limit=limit, cursor=cursor, secret=secret)
    return LeaderboardPage(
        tuple(
            Ranked(name, each.score, each.numbers.get(records.Status.APPROVED.value, 0))
            for name, each in found.standings
        ),
        found.cursor,
    )


def known(site: str, *, limit: int, cursor: str | None, secret: str) -> Known:
    """The same page, for moderators: with ids and all numbers.

    Raises:
        errors.BadInput, errors.BadCursor: see `best`.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise errors.BadInput("limit", f"is not 1 to {MAX_LIMIT}")
    listing = cursors.label("authors", site)
    after = None
    if cursor is not None:
        score, alias = cursors.unseal(cursor, listing, secret)
        after = (int(score), alias)
    found = totals.best_authors(site, limit + 1, after=after)
    shown = found[:limit]
    last = (str(shown[-1].score), shown[-1].alias) if len(found) > limit else None
    return Known(
        tuple(zip(_names(site, shown), shown, strict=True)),
        None if last is None else cursors.seal(last, listing, secret),
    )


def _names(site: str, standings: Sequence[totals.Standing]) -> Iterator[records.Author]:
    """What the authors call themselves: in the comment that their Standing knows, or in another."""
    keys = [comment_rows.comment_key(each.comment) for each in standings if each.comment]
    found = {
        message.key.path[-1].name: conversion.comment_from_message(message)
        for message in reads.read(keys)
        if message is not None
    }
    for each in standings:
        comment = found.get(each.comment)
        if comment is None or comment.author.id != each.author or comment.is_tombstone:
            comment = _comment_of(site, each.author)
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
