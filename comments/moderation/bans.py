"""Ban authors and, optionally, the networks and mailboxes that identify them after a new token.

The caller marks of a ban (`caller_marks`) come from the author's newest comments. The caller must
have checked that the actor is allowed to ban authors. A network is banned only for a number of
days, because other people share it or use it later. After that time, the network's mark is removed
from the rulebook.
"""

import functools
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from comments import errors
from comments.accounts import accounts
from comments.domain import records
from comments.domain.crypto import caller_marks, guest_addresses
from comments.domain.text import sanitizing
from comments.moderation import review_queue
from comments.moderation.policy import policy_changes, rulebook
from comments.sites import site_settings
from comments.store import reads, transactions
from comments.store.memory import per_process

LONGEST = 365  # Maximum number of days for which a network is banned.
_LOOKED_AT = 20  # The number of the author's newest comments that are examined.
_EXCERPT = 100  # Maximum number of characters of an excerpt.
_EVERY = 3600.0  # Minimum seconds between two searches of a process for expired marks.
_LOOKS = per_process.PerProcess(dict[str, float])


class BanScope(NamedTuple):
    """What to ban in addition to the author: the network (for some days) and the mailbox.

    `comment` is the id of the comment that led to the ban; if it is empty, the author's newest
    comment is used.
    """

    network_days: int | None = None
    mailbox: bool = False
    comment: str = ""


class BanEntry(NamedTuple):
    """A ban, with the author's name and the beginning of the comment that led to the ban.

    The name and the text are empty if the comment no longer exists.
    """

    ban: rulebook.Ban
    name: str
    excerpt: str


def ban(  # noqa: PLR0913 - the ban and the actor
    site: str,
    author: str,
    wanted: BanScope,
    actor: records.Actor,
    *,
    secret: str,
    now: datetime,
    until: datetime | None = None,
    is_shadow: bool = False,
    reason: str = "",
) -> rulebook.Rulebook:
    """Ban an author and, depending on `wanted`, also their network and mailbox.

    Raises:
        errors.BadInput: a field is invalid; the error names the field.
        errors.Conflict: the network or the mailbox is unknown.
    """
    days = wanted.network_days
    if days is not None and not 1 <= days <= LONGEST:
        raise errors.BadInput("network_days", "out-of-range", minimum=1, maximum=LONGEST)
    rows = list(_comments(site, author, wanted.comment)) if author else []
    network = mailbox = ""
    if days is not None:
        opened = (caller_marks.open_mark(_text(row, "came_from"), secret, now=now) for row in rows)
        network = next(filter(None, opened), "")
        if not network:
            raise errors.Conflict("network-unknown")
    if wanted.mailbox:
        mailbox = _mailbox(site, author, rows, secret, now)
    known = rulebook.BanMarks(
        comment=rows[0].key.path[-1].name if rows else "",
        network=network,
        network_until=None if days is None else now + timedelta(days=days),
        mailbox=mailbox,
    )
    return policy_changes.ban(
        site, author, actor, now=now, until=until, is_shadow=is_shadow, reason=reason, known=known
    )


def entries(bans: Sequence[rulebook.Ban]) -> list[BanEntry]:
    """Add author names and excerpts to bans. One call reads all comments."""
    cases = review_queue.cases([entry.known.comment for entry in bans if entry.known.comment])
    return [_entry(entry, cases.get(entry.known.comment)) for entry in bans]


def beside(ban_entry: rulebook.Ban) -> Iterator[str]:
    """Describe what a ban matches in addition to the author id."""
    if ban_entry.known.network and ban_entry.known.network_until is not None:
        yield f"network until {ban_entry.known.network_until:%Y-%m-%d}"
    if ban_entry.known.mailbox:
        yield "mailbox"


def expire(now: datetime) -> int:
    """Remove expired network marks, at most once an hour; return the number of changed sites.

    Raises:
        errors.Overloaded: the store is busy; a later call removes the remaining marks.
    """
    looks = _LOOKS.get()
    if time.monotonic() < looks.get("next", 0.0):
        return 0
    looks["next"] = time.monotonic() + _EVERY
    sites = site_settings.every_kept()
    over = [site.id for site in sites if rulebook.current(site.id).is_to_prune(now)]
    for site in over:
        transactions.transaction(functools.partial(_prune, site, now))
        rulebook.forget(site)
    return len(over)


def _prune(site: str, now: datetime) -> None:
    _, _, writes = rulebook.change_writes(site, lambda book: book, now=now)
    transactions.apply(writes)


def _entry(ban_entry: rulebook.Ban, case: records.Case | None) -> BanEntry:
    if case is None:
        return BanEntry(ban_entry, "", "")
    text = " ".join(sanitizing.plain_text(case.comment.html).split())
    return BanEntry(ban_entry, case.comment.author.name, text[:_EXCERPT])


def _comments(site: str, author: str, comment: str) -> Iterator[Any]:
    """Yield the author's comments: first the comment that led to the ban, then the newest ones.

    Raises:
        errors.BadInput: the author did not write `comment`.
    """
    query = reads.Query(
        "Comment",
        where=(("site", "=", site), ("author_id", "=", author)),
        order=("-created", "revision"),
        limit=_LOOKED_AT,
    )
    newest = list(reads.fetch(query))
    if not comment:
        yield from newest
        return
    for message in reads.lookup("Comment", [comment]):
        if _text(message, "site") != site or _text(message, "author_id") != author:
            raise errors.BadInput("comment", "other-author")
        yield message
    yield from (message for message in newest if message.key.path[-1].name != comment)


def _mailbox(site: str, author: str, rows: Sequence[Any], secret: str, now: datetime) -> str:
    account = accounts.get(author.removeprefix(accounts.AUTHOR)) if _has_account(author) else None
    address = accounts.readable_address(account, secret, now=now) if account is not None else ""
    given = (guest_addresses.address(_text(row, "author_email"), secret, now=now) for row in rows)
    address = address or next(filter(None, given), "")
    if not address:
        raise errors.Conflict("mailbox-unknown")
    return caller_marks.mailbox(site, address, secret)


def _has_account(author: str) -> bool:
    return author.startswith(accounts.AUTHOR)


def _text(message: Any, name: str) -> str:
    return str(message.properties[name].string_value)
