"""Make staging copies of websites, with or without their comments.

A copy has an id and origins of its own, and the settings and rules of the original. It gets no
followers, staff, bans, keys, webhooks, providers or classifiers. A copy never sends mail, webhooks
or texts to classifiers (`records.Site.copy_of`), so nobody outside notices what happens there.
`upload_steps` copies the comments afterwards, in a job that begins with the copy.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.ids import site_ids, thread_ids
from comments.domain.text.addresses import web_origins
from comments.events import audit_log
from comments.moderation.policy import rulebook
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.transfer.uploads import upload_store

COPY = "copy-site"  # The verb in the audit log
_COPIED = (
    "digits", "width", "levels", "reshaped", *thread_ids.RULES, "cdn_seconds", "freshness",
    "categories", "guard", "budget", "options", "title",
)  # fmt: skip


def copy(
    site_id: str,
    new: str,
    origins: Sequence[str],
    actor: records.Actor,
    *,
    now: datetime,
    with_comments: bool = False,
) -> records.Site:
    """Add a staging copy of a site, and begin to copy its comments, in one transaction.

    Raises:
        errors.NotFound: the site does not exist.
        errors.BadInput: the new id or an origin is malformed, or there is no origin.
        errors.Conflict: another site has the new id.
    """
    site_ids.check(new)
    checked = list(dict.fromkeys(map(web_origins.check, origins)))
    if not checked:
        raise errors.BadInput("origin", "required")
    act = audit_log.Act(actor, COPY)
    names = [comment_rows.site_key(name) for name in (site_id, new)]

    def body() -> records.Site:
        row, other, alias = reads.get_multi([*names, comment_rows.site_alias_key(new)])
        if row is None or row.deleted is not None:
            raise errors.NotFound("site", site_id)
        if other is not None and transactions.may_have_run() and audit_log.is_done(act):
            return conversion.site_record(other)
        if other is not None or alias is not None:
            raise errors.Conflict("site-exists", value=new)
        copied = {name: getattr(row, name) for name in _COPIED}
        made = comment_rows.SiteRow(
            key=names[1], origins=checked, created=now, copy_of=site_id, **copied
        )
        book = _without_people(rulebook.from_store(site_id))
        _, _, writes = rulebook.change_writes(new, lambda _: book, now=now)
        if with_comments:
            transactions.apply(upload_store.copy_writes(new, site_id, now=now))
        transactions.apply(
            ownership.Writes("site_settings", put=(made,)),
            writes,
            audit_log.entry_writes(act, new, "site", before="", after=site_id, now=now),
        )
        return conversion.site_record(made)

    copied = transactions.transaction(body)
    site_settings.COPIES.get().drop(new)
    rulebook.forget(new)
    return copied


def _without_people(book: rulebook.Rulebook) -> rulebook.Rulebook:
    """Return the settings without bans and classifiers, and without rules that name networks."""
    rules = tuple(rule for rule in book.rules if not rule.networks)
    return msgspec.structs.replace(book, rules=rules, bans=(), classifiers=())
