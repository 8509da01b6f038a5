"""Dry-run rules: find what they would do to stored comments, without changing the comments.

Each stored comment is judged as if it had just been sent, with these exceptions:

- `networks` never matches, because a comment's network is not stored.
- `approved_under` uses the author's current number of other approved comments.
- `younger_than` uses the number of days that the author had been on the site when the comment was
  written, based on the author id or the account.
- `repeated` counts only the comments that the dry run examines.
"""

import functools
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.counters.counting import APPROVED
from comments.domain.ids import author_ids
from comments.domain.records import Status
from comments.moderation import review_queue
from comments.moderation.policy import rules
from comments.store import reads
from comments.store.models import account_rows, comment_rows, conversion

MOST = 10_000  # Maximum number of comments that one dry run examines.
_DAY = timedelta(days=1)


class Match(msgspec.Struct, frozen=True):
    """A comment that a rule matches, and what the rule would have done."""

    comment: records.Comment
    ruling: records.Ruling


class DryRunReport(msgspec.Struct, frozen=True):
    """The number of examined comments, and the matching comments, newest first."""

    looked_at: int
    matches: tuple[Match, ...]


def try_rules(site: str, tried: Sequence[rules.Rule], *, last: int = 1_000) -> DryRunReport:
    """Dry-run rules on a site's `last` newest comments, excluding retracted ones.

    Raises:
        errors.BadInput: a rule is invalid, or `last` is not between 1 and `MOST`.
    """
    if not 1 <= last <= MOST:
        raise errors.BadInput("last", "out-of-range", minimum=1, maximum=MOST)
    for rule in tried:
        rules.check(rule)
    comments = _newest(site, last)
    standings = _standings(site, comments, tried)
    repeats = _repeats(comments)
    since = _since(comments, tried)
    matches: list[Match] = []
    for comment in comments:
        others = standings.get(comment.author.id, 0) - (comment.status is Status.APPROVED)
        subject = rules.RuleSubject(
            body=comment.body,
            html=comment.html,
            name=comment.author.name,
            website=comment.author.website,
            approved=functools.partial(max, 0, others),
            repeats=repeats[comment.id],
            age=_age(comment, since),
        )
        ruling = rules.judge(tried, subject)
        if ruling.status is not Status.APPROVED:
            matches.append(Match(comment, ruling))
    return DryRunReport(len(comments), tuple(matches))


def _newest(site: str, last: int) -> list[records.Comment]:
    """Use index queries to find the newest comments that are not retracted, and read them."""
    newest = review_queue.newest(site, last)
    messages = reads.read([comment_rows.comment_key(name) for name in newest])
    return [conversion.comment_from_message(message) for message in messages if message is not None]


def _standings(
    site: str, comments: Sequence[records.Comment], tried: Sequence[rules.Rule]
) -> dict[str, int]:
    """Count each author's approved comments, but only if a rule needs the counts."""
    if all(rule.approved_under is None for rule in tried):
        return {}
    standings = review_queue.standings(site, (comment.author.id for comment in comments))
    return {author: numbers.get(APPROVED, 0) for author, numbers in standings.items()}


def _since(
    comments: Sequence[records.Comment], tried: Sequence[rules.Rule]
) -> dict[str, datetime | None]:
    """Return when authors' accounts were created, but only if a rule needs these times."""
    if all(rule.younger_than is None for rule in tried):
        return {}
    authors = dict.fromkeys(comment.author.id for comment in comments)
    known = [author for author in authors if author.startswith(author_ids.ACCOUNT)]
    keys = [account_rows.account_key(author.removeprefix(author_ids.ACCOUNT)) for author in known]
    rows = reads.get_multi(keys)
    return {
        author: None if row is None else row.created
        for author, row in zip(known, rows, strict=True)
    }


def _age(comment: records.Comment, since: Mapping[str, datetime | None]) -> int | None:
    """Return the author's days on the site at the time of a comment; None for imported comments."""
    author = comment.author.id
    return author_ids.age(author, since.get(author), comment.created) if author else None


def _repeats(comments: Sequence[records.Comment]) -> dict[str, int]:
    """Count for each comment how often its text was posted within the day that ends with it."""
    counts: dict[str, int] = {}
    seen: dict[str, list[datetime]] = {}
    for comment in sorted(comments, key=lambda each: each.created):
        moments = seen.setdefault(rules.likeness(comment.body), [])
        moments.append(comment.created)
        counts[comment.id] = sum(comment.created - moment < _DAY for moment in moments)
    return counts
