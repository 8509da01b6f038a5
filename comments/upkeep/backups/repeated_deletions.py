"""Repeat in a restored store the deletions that people requested after the backup was made.

A backup still contains comments, accounts, subscriptions and sites that were deleted after it was
made. The store that the backup replaces shows what was deleted, if that store can be read. The same
data is deleted again before the restored store serves requests.

Only the replaced store decides: what was not deleted there is not deleted here. Repeating the step
changes nothing. A site that was erased completely is unknown there, so the backup brings it back.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from comments.accounts import accounts
from comments.domain import records
from comments.notifications import subscriptions
from comments.sites import site_deletion, site_settings
from comments.store import connection, reads
from comments.transfer import personal_data

_AT_ONCE = 300  # Rows per look-up.
_ACTOR = records.Actor("cli", "the command line")


class RepeatedDeletions(NamedTuple):
    """The numbers of comments, accounts, subscriptions and sites that were deleted again."""

    comments: int
    accounts: int
    subscriptions: int
    sites: int


def repeat(
    replaced: connection.Store, restored: connection.Store, *, now: datetime
) -> RepeatedDeletions:
    """Delete from `restored` what was deleted from `replaced`."""
    with replaced.context():
        retracted = [
            comment
            for site in site_settings.every_kept()
            for comment in personal_data.retracted_comments(site.id)
        ]
        deleted = site_deletion.deleted_sites()
    with restored.context():
        comments = sum(personal_data.retract_again(comment_id, now) for comment_id in retracted)
        kept = [list(_paths(kind)) for kind in ("Account", "Subscription")]
    with replaced.context():
        removed, ended = (list(_missing_paths(paths)) for paths in kept)
    with restored.context():
        for ((_, account),) in removed:
            accounts.remove(account)
        for (_, subscriber), (_, name) in ended:
            subscriptions.unsubscribe(subscriber, [name], now=now)
        sites = sum(_delete_site(site, now) for site in deleted)
    return RepeatedDeletions(comments, len(removed), len(ended), sites)


def _delete_site(site: records.Site, now: datetime) -> int:
    """Delete a site again, as of its first deletion; return the number of sites that changed."""
    if not site_settings.is_active(site.id):
        return 0
    site_deletion.delete(site.id, _ACTOR, now=site.deleted or now)
    return 1


def _paths(kind: str) -> Iterator[reads.Path]:
    for message in reads.walk(reads.Query(kind, keys_only=True)):
        yield tuple((part.kind, part.name) for part in message.key.path)


def _missing_paths(paths: list[reads.Path]) -> Iterator[reads.Path]:
    for start in range(0, len(paths), _AT_ONCE):
        part = paths[start : start + _AT_ONCE]
        yield from (path for path, row in zip(part, reads.read(part), strict=True) if row is None)
