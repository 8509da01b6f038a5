"""What rules would do to comments that are there: a dry run, which touches nothing.

Owns how a stored comment is asked about as if it were just sent. What is not stored is not known:
where a text came from, so `networks` never speaks here. `approved_under` asks how many approved
comments the author has now, besides this one, `younger_than` for how long he was here when he
wrote, as his id or his account says. `repeated` counts among the comments that are looked at, which
are the newest.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.domain import author_ids, records
from comments.domain.counting import APPROVED
from comments.domain.records import Status
from comments.moderation import rules
from comments.store import reads
from comments.store.models import account_rows, comment_rows, conversion, counter_rows

MOST = 10_000  # comments that one dry run looks at
_DAY = timedelta(days=1)
_LOOKED_AT = [status for status in Status if status is not Status.RETRACTED]


class Match(msgspec.Struct, frozen=True):
    """A comment that a rule speaks of: what it is, and what would have become of it."""

    comment: records.Comment
    ruling: records.Ruling


class DryRunReport(msgspec.Struct, frozen=True):
    """How many comments were looked at, and those that rules speak of, newest first."""

    looked_at: int
    matches: tuple[Match, ...]


def run(site: str, tried: Sequence[rules.Rule], *, last: int = 1_000) -> DryRunReport:
    """What rules would do to a site's last comments, whatever they are now but retracted.

    Raises:
        errors.BadInput: a rule could not mean anything, or `last` is not 1 to `MOST`.
    """
    if not 1 <= last <= MOST:
        raise errors.BadInput("last", f"is 1 to {MOST}")
    for rule in tried:
        rules.check(rule)
    comments = _newest(site, last)
    standings = _standings(site, comments, tried)
    repeats = _repeats(comments)
    since = _since(comments, tried)
    matches: list[Match] = []
    for comment in comments:
        others = standings.get(comment.author.id, 0) - (comment.status is Status.APPROVED)
        said = rules.Said(
            body=comment.body,
            html=comment.html,
            name=comment.author.name,
            website=comment.author.website,
            approved=functools.partial(max, 0, others),
            repeats=repeats[comment.id],
            age=_age(comment, since),
        )
        ruling = rules.judge(tried, said)
        if ruling.status is not Status.APPROVED:
            matches.append(Match(comment, ruling))
    return DryRunReport(len(comments), tuple(matches))


def _newest(site: str, last: int) -> list[records.Comment]:
    """The newest comments of any status, each read once: an index tells where they stand."""
    places = [place for status in _LOOKED_AT for place in _of_status(site, status, last)]
    newest = sorted(places, reverse=True)[:last]
    found = reads.read([comment_rows.comment_key(name) for _, name in newest])
    return [conversion.comment_from_message(each) for each in found if each is not None]


def _of_status(site: str, status: Status, last: int) -> Iterator[tuple[datetime, str]]:
    query = reads.Query(
        "Comment",
        where=(("site", "=", site), ("status", "=", status.value)),
        order=("-created", "revision"),
        projection=("created", "revision"),
        limit=last,
    )
    for message in reads.fetch(query):
        moment = conversion.projected_time(message.properties["created"])
        if moment is not None:
            yield moment, message.key.path[-1].name


def _standings(
    site: str, comments: Sequence[records.Comment], tried: Sequence[rules.Rule]
) -> dict[str, int]:
    """How many approved comments each author has; asked for only where a rule does."""
    if all(rule.approved_under is None for rule in tried):
        return {}
    authors = list(dict.fromkeys(each.author.id for each in comments if each.author.id))
    rows = reads.get_multi([counter_rows.standing_key(site, author) for author in authors])
    return {
        author: counter_rows.numbers_of(row).get(APPROVED, 0)
        for author, row in zip(authors, rows, strict=True)
    }


def _since(
    comments: Sequence[records.Comment], tried: Sequence[rules.Rule]
) -> dict[str, datetime | None]:
    """When the accounts of authors were made; asked for only where a rule does."""
    if all(rule.younger_than is None for rule in tried):
        return {}
    authors = dict.fromkeys(each.author.id for each in comments)
    known = [author for author in authors if author.startswith(author_ids.ACCOUNT)]
    keys = [account_rows.account_key(author.removeprefix(author_ids.ACCOUNT)) for author in known]
    rows = reads.get_multi(keys)
    return {
        author: None if row is None else conversion.plain_or_none(row.created)
        for author, row in zip(known, rows, strict=True)
    }


def _age(comment: records.Comment, since: Mapping[str, datetime | None]) -> int | None:
    """For how long an author was here when he wrote; unknown of whom an import does not name."""
    author = comment.author.id
    return author_ids.age(author, since.get(author), comment.created) if author else None


def _repeats(comments: Sequence[records.Comment]) -> dict[str, int]:
    """How often each comment's text came within the day before it, itself included."""
    found: dict[str, int] = {}
    seen: dict[str, list[datetime]] = {}
    for comment in sorted(comments, key=lambda each: each.created):
        moments = seen.setdefault(rules.likeness(comment.body), [])
        moments.append(comment.created)
        found[comment.id] = sum(comment.created - each < _DAY for each in moments)
    return found
