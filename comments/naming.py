"""Moderators set what a thread shows of itself: its title, its page's address, its categories.

What a moderator sets is shown whatever comments bring, until it is given back. The caller has
made sure that the actor may. The entry of the audit log names the fields and not what they hold.
"""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from comments import (
    audit,
    categories,
    datastore,
    errors,
    filing,
    models,
    posting,
    records,
    tasks,
    threadids,
    threads,
    tree,
)

FIELDS = ("title", "url", "categories")
_VERB = "name-thread"


class Wanted(NamedTuple):
    """What a thread is to show; None for what stays. `inherits` are fields to give back."""

    title: str | None = None
    url: str | None = None
    categories: Collection[str] | None = None
    inherits: Collection[str] = ()


class Named(NamedTuple):
    """A thread as it is now, and how many comments moved to other categories."""

    thread: records.Thread
    moved: int


def name(
    site: records.Site,
    thread: str,
    wanted: Wanted,
    actor: records.Actor,
    *,
    now: datetime,
    reason: str = "",
) -> Named:
    """Set fields of a thread, or show again what its oldest approved comment brought.

    Raises:
        errors.BadInput: naming the field that is refused.
        errors.NotFound: nobody wrote there yet.
        errors.Overloaded: the store is busy. Comments that did not move yet are moved later.
    """
    fields = tuple(each for each in FIELDS if getattr(wanted, each) is not None)
    for each in wanted.inherits:
        if each not in FIELDS or each in fields:
            raise errors.BadInput("inherit", f"{each} is unknown, or set as well")
    given = _checked(site, thread, wanted)
    where = records.ThreadName(site.id, thread)
    act = audit.Act(actor, _VERB, reason)

    def body() -> None:
        row = datastore.get(models.thread_key(where))
        if row is None:
            raise errors.NotFound("thread", thread)
        if datastore.may_have_run() and audit.is_done(act):
            return
        before = _said(row)
        writes = tree.entitle(row, given, fields=fields, inherits=tuple(wanted.inherits))
        subject = f"thread:{models.thread_key_name(where)}"
        note = audit.noted(act, site.id, subject, before=before, after=_said(row), now=now)
        datastore.apply(writes, note)

    datastore.transaction(body, line=f"{where.site}/{where.id}")
    tasks.erased(where)
    moved = filing.run(where, now=now)
    found = threads.fresh(where)
    if found is None:
        raise errors.NotFound("thread", thread)
    return Named(found, moved)


def _checked(site: records.Site, thread: str, wanted: Wanted) -> tree.Brought:
    url = wanted.url or ""
    if url and not threads.address(url, site):
        raise errors.BadInput("url", f"is on none of the site's origins: {', '.join(site.origins)}")
    return tree.Brought(
        title=posting.clean_title(wanted.title or ""),
        url=threadids.page_url(url, thread, site) if url else "",
        categories=tuple(categories.canonical_set(wanted.categories or ())),
    )


def _said(row: models.Thread) -> str:
    return f"set by moderators: {', '.join(row.own) or 'nothing'}"
