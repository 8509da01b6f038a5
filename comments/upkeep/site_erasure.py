"""Erase every row of a deleted website.

    site_erasure.begin(site, now=now)
    site_erasure.go_on(site, now=now)

`ERASERS` finds the rows of each kind, and `EXEMPT` lists the kinds that need no search. Each step
deletes a bounded number of rows in one transaction. The steps keep no position: a step looks for
rows that still exist, so any process can continue an erasure at any time, and repeating a step
changes nothing. No other site's rows are read in a transaction that writes.

An erasure leaves no row with the site's id, and changes no row of another site.

Work that another process began before the deletion, such as a compaction, may write a row after the
erasure has passed its kind. The site's own row is therefore deleted last: `SETTLING` after the
erasure began, by a call that found nothing else. Until then, no site can be added with this id, and
the scheduler compacts no thread of the site.
"""

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from comments import errors
from comments.accounts import accounts, security_log
from comments.accounts.oidc import providers
from comments.domain import records
from comments.events import mail_jobs, outbox, webhook_endpoints
from comments.moderation.classifiers import classifier_answers
from comments.notifications import subscriptions
from comments.sites import site_deletion
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, moderation_rows, schema, vote_rows
from comments.transfer.importing import import_journal
from comments.upkeep.integrity import thread_audit

AT_ONCE = 100  # Rows in one transaction
STEPS = 40  # Transactions per call for a server, so that its other work continues in between.
# Longer than any work that reads a site's rows and then writes; Datastore ends transactions after
# 4.5 minutes, and a process knows within a minute that a site is deleted.
SETTLING = timedelta(minutes=15)
_FIRST = " "  # Sorts before all key names.

Keys = Iterator[schema.RowKey]
Finder = Callable[[str], Keys]


class ErasureProgress(NamedTuple):
    """The number of rows that a call deleted, and what remains.

    `is_left` tells whether the call ended because of its limit. `is_done` tells whether nothing of
    the site is left; if neither is set, a call after `SETTLING` deletes the site's own row.
    """

    rows: int
    is_left: bool
    is_done: bool


def begin(site: str, *, now: datetime) -> None:
    """Begin an erasure. From now on, the site cannot be taken back.

    Raises:
        errors.NotFound: the site does not exist.
        errors.Conflict: the site is not deleted.
        errors.ImportRefused: an import into the site is running.
    """
    imports = import_journal.all_imports(site)
    running = next((stored for stored in imports if stored.may_still_run(now)), None)
    if running is not None:
        raise errors.ImportRefused(
            f"The import {running.id} of {running.file} into {site} is still running. Wait until "
            f"it ends, or stop it and try again after {import_journal.LATE} seconds."
        )
    site_deletion.begin_erasure(site, now=now)


def go_on(
    site: str,
    *,
    now: datetime,
    steps: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ErasureProgress:
    """Continue an erasure that has begun, for up to `steps` transactions; None for no limit.

    This function calls `progress` with the number of rows that each step deleted.

    Raises:
        errors.Overloaded: the store did not respond in time; a later call continues.
    """
    stored = reads.get(comment_rows.site_key(site))
    if stored is None or stored.erasing is None:
        return ErasureProgress(0, is_left=False, is_done=stored is None)
    rows = 0
    for number, deleted in enumerate(_steps(site, now), 1):
        rows += deleted
        progress(deleted)
        if steps is not None and number >= steps:
            return ErasureProgress(rows, is_left=True, is_done=False)
    is_done = not rows and now - stored.erasing >= SETTLING
    if is_done:
        site_deletion.remove(site)
    return ErasureProgress(rows, is_left=bool(rows), is_done=is_done)


def due_erasures(now: datetime) -> list[records.SiteErasure]:
    """List the erasures that have begun, and of the sites that can no longer be taken back."""
    return [
        records.SiteErasure(site.id)
        for site in site_deletion.deleted_sites()
        if site.erasing is not None or now >= site_deletion.ends(site)
    ]


def run_part(site: str, *, now: datetime) -> ErasureProgress:
    """Begin or continue an erasure that is due, for a bounded number of transactions.

    Raises:
        errors.Overloaded: the store did not respond in time; a later call continues.
    """
    try:
        begin(site, now=now)
    except (errors.Conflict, errors.NotFound):  # Taken back, or erased by another process
        return ErasureProgress(0, is_left=False, is_done=False)
    return go_on(site, now=now, steps=STEPS)


def _steps(site: str, now: datetime) -> Iterator[int]:
    """Run the erasure, and yield the number of deleted rows after each transaction."""
    for find in ERASERS.values():
        part: list[schema.RowKey] = []
        for key in find(site):
            part.append(key)
            if len(part) == AT_ONCE:
                yield _delete(part)
                part = []
        if part:
            yield _delete(part)
    for rewrite in _REWRITES:
        yield from rewrite(site)
    yield from _leave_accounts(site, now)


def _delete(keys: Sequence[schema.RowKey]) -> int:
    writes = ownership.Writes(ownership.ERASER, delete=tuple(keys))
    transactions.transaction(functools.partial(transactions.apply, writes))
    return len(keys)


# --- Rows that also belong to others --------------------


def _leave_providers(site: str) -> Iterator[int]:
    for provider in providers.every():
        if site in provider.sites:
            providers.withdraw(provider.name, [site], at_desk=False)
            yield 1


def _leave_accounts(site: str, now: datetime) -> Iterator[int]:
    """Take the roles on the site from accounts, and delete the accounts of its readers."""
    for account in accounts.staff():
        if any(grant.site == site for grant in account.grants):
            cause = security_log.Cause(security_log.OPERATOR, "", "", now)
            accounts.grant(account.id, None, site, cause)
            yield 1
    for key in _in_range("Identity", f"site/{site}:", f"site/{site};"):
        yield accounts.leave(key.id())


def _leave_subscribers(site: str) -> Iterator[int]:
    """End the subscriptions to the site; with the last subscription, erase the address."""
    for message in reads.walk(reads.Query("Subscription")):
        if message.properties["site"].string_value == site:
            yield subscriptions.erase_of_site(message.key.path[0].name, site)


def _leave_audit(site: str) -> Iterator[int]:
    if number := thread_audit.forget(site):
        yield number


_REWRITES = (_leave_providers, _leave_subscribers, _leave_audit)


# --- The rows of each kind --------------------


def _all(kind: str, *where: tuple[str, str, object], order: Sequence[str] = ()) -> Keys:
    """Yield the keys that a query matches."""
    for message in reads.walk(reads.Query(kind, where, order, keys_only=True)):
        yield vote_rows.key_of(message)


def _in_range(kind: str, first: str, behind: str) -> Keys:
    """Yield the keys whose names are at least `first` and before `behind`."""
    where = (("__key__", ">=", first), ("__key__", "<", behind))
    return _all(kind, *where, order=("__key__",))


def _one(kind: str) -> Finder:
    """Find the row whose key is the site's id."""
    return lambda site: _in_range(kind, site, f"{site}\0")


def _places(site: str) -> tuple[tuple[str, str], ...]:
    """Return the ranges of names that begin with the site's id and "/" or "#"."""
    return (f"{site}#", f"{site}$"), (f"{site}/", f"{site}0")


def _by_prefix(kind: str, *prefixes: str) -> Finder:
    """Find the rows whose names begin with a prefix, the site's id, and "/" or "#"."""

    def find(site: str) -> Keys:
        for prefix in prefixes or ("",):
            for first, behind in _places(site):
                yield from _in_range(kind, f"{prefix}{first}", f"{prefix}{behind}")

    return find


def _below(kind: str, parent: str, *prefixes: str) -> Finder:
    """Find the rows below such rows, which need not exist."""

    def find(site: str) -> Keys:
        for prefix in prefixes or ("",):
            for edges in _places(site):
                first, behind = (
                    schema.RowKey(parent, f"{prefix}{edge}", kind, _FIRST) for edge in edges
                )
                where = (("__key__", ">", first), ("__key__", "<", behind))
                yield from _all(kind, *where, order=("__key__",))

    return find


def _with_site(kind: str) -> Finder:
    """Find the rows whose property `site` is the site's id."""
    return lambda site: _all(kind, ("site", "=", site))


def _with_thread(kind: str) -> Finder:
    """Find the rows whose property `thread` is the key name of a thread of the site."""

    def find(site: str) -> Keys:
        for first, behind in _places(site):
            yield from _all(kind, ("thread", ">=", first), ("thread", "<", behind))

    return find


def _comments(site: str) -> Keys:
    """Find comments, each behind the rows whose key is its id.

    A comment's own row is last, because it alone tells that the other rows belong to the site.
    """
    for comment in _all("Comment", ("site", "=", site)):
        yield moderation_rows.erasure_key(comment.id())
        yield moderation_rows.advice_key(comment.id())
        networks = reads.Query("VoterNetwork", ancestor=comment, keys_only=True)
        yield from map(vote_rows.key_of, reads.fetch(networks))
        yield comment


def _follows(site: str) -> Keys:
    return (key for key in _all("Follow") if key[0][1].endswith(f"/{site}"))


def _messages(site: str) -> Keys:
    for channel in (webhook_endpoints.CHANNEL, classifier_answers.CHANNEL):
        first, behind = f"{channel}/{site}/", f"{channel}/{site}0"
        yield from _all("Message", ("queue", ">=", first), ("queue", "<", behind))


def _events(site: str) -> Keys:
    for message in reads.walk(reads.Query("Event", keys_only=True)):
        for row in outbox.read([message.key.path[-1].name]):
            if site in _sites_of(outbox.record(row)):
                yield row.key


def _sites_of(event: outbox.Event) -> set[str]:
    if event.kind is outbox.EventKind.FOLLOWED:
        return {outbox.following_of(event)[0]}
    if event.kind is outbox.EventKind.MAIL:
        # The link of a confirmation or a sign-in is encrypted, and is refused without the site.
        job = mail_jobs.decode(event.detail)
        if isinstance(job, mail_jobs.DigestMail):
            return {job.site}
        comment = getattr(job, "event", "").partition(".")[0]
        row = reads.get(comment_rows.comment_key(comment)) if comment else None
        return {row.site} if row else set()
    return {state.site for change in event.changes for state in change if state is not None}


def _links(site: str) -> Keys:
    """Find invitations to the site, and codes of its sign-in windows.

    The content of other links names no site, or is encrypted and of no use after some minutes.
    """
    for message in reads.walk(reads.Query("Ticket")):
        content = message.properties["content"].string_value
        if content.startswith("{"):
            fields: dict[str, Any] = json.loads(content)
            grants = fields.get("grants", ())
            if fields.get("site") == site or any(place == site for _, place in grants):
                yield vote_rows.key_of(message)


def _jobs(site: str) -> Keys:
    """Find the jobs whose names end with the site's id, or with the place of a thread or import."""
    for key in _all("Job"):
        _, _, place = key.id().partition("/")
        if place == site or place.startswith((f"{site}/", f"{site}#")):
            yield key


ERASERS: Mapping[str, Finder] = {
    # Rows that cause work come first, so that little is written behind the erasure. Rows of all
    # sites are searched last, because each call begins again.
    "Job": _jobs,
    "ImportPart": _by_prefix("ImportPart"),
    "VotesDue": _with_thread("VotesDue"),
    "Event": _events,
    "Message": _messages,
    "ModerationSession": _with_site("ModerationSession"),
    "Ticket": _links,
    "SiteAlias": _with_site("SiteAlias"),
    "SiteHooks": _one("SiteHooks"),
    "SiteKeys": _one("SiteKeys"),
    "SiteSetup": _one("SiteSetup"),
    "Rulebook": _one("Rulebook"),
    "AuthorLink": _by_prefix("AuthorLink"),
    "MovePart": _by_prefix("MovePart"),
    "ImportBatch": _by_prefix("ImportBatch"),
    "Vote": _with_thread("Vote"),
    "Comment": _comments,
    "Report": _with_site("Report"),
    "AuditEntry": _with_site("AuditEntry"),
    "BucketDirectory": _below("BucketDirectory", "Thread"),
    "Bucket": _below("Bucket", "Thread"),
    "Ranking": _below("Ranking", "Thread"),
    "Participation": _below("Participation", "Thread"),
    "Thread": _by_prefix("Thread"),
    "ThreadAlias": _by_prefix("ThreadAlias"),
    "FollowerMark": _below("FollowerMark", "FollowerList", "thread:", "inbox:"),
    "FollowerSegment": _below("FollowerSegment", "FollowerList", "thread:", "inbox:"),
    "FollowerList": _by_prefix("FollowerList", "thread:", "inbox:"),
    "Counter": _by_prefix("Counter", "thread/", "threads/", "site/"),
    "Standing": _by_prefix("Standing"),
    "Category": _by_prefix("Category"),
    "Day": _by_prefix("Day"),
    "Month": _by_prefix("Month"),
    "Appearance": _by_prefix("Appearance"),
    "DeclaredCount": _by_prefix("DeclaredCount"),
    "Usage": _by_prefix("Usage"),
    "Follow": _follows,
}
# The kinds without a search of their own, each with the reason.
EXEMPT: Mapping[str, str] = {
    "Site": "`go_on` deletes the site's own row last.",
    "Advice": "Deleted with its comment.",
    "VoterNetwork": "Deleted with its comment.",
    "ErasureDue": "Deleted with its comment.",
    "Subscription": "`_leave_subscribers` ends it together with the subscriber.",
    "Subscriber": "`_leave_subscribers` deletes it with the last subscription.",
    "Account": "`_leave_accounts` removes its roles, or deletes the account of a site's reader.",
    "Identity": "`_leave_accounts` deletes it with the account of a site's reader.",
    "Session": "Belongs to an account and names no site.",
    "Passkey": "Belongs to an account and names no site.",
    "SecurityLog": "Belongs to an account and names no site.",
    "Providers": "`_leave_providers` removes the site from the only row.",
    "MailServer": "Belongs to the service, and names no site.",
    "RateBucket": "Contains digests only, and is deleted within two days.",
}
