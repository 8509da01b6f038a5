"""Rename websites: the new id is an alias of the id under which the site is stored.

The stored id is part of most keys of a site, so it never changes. An alias is a row of its own that
names the stored id. Requests and commands may use either id: `canonical_id` translates the id once,
before a view or command sees it, and everything below knows only the stored id. Snippets with the
old id therefore continue to work.

No two sites share an id or alias, because `rename` and `site_settings.add` read both rows in the
transaction that writes one of them.
"""

import contextlib
from datetime import datetime

from comments import errors
from comments.domain import records
from comments.domain.ids import site_ids
from comments.events import audit_log
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.memory import per_process, row_copies
from comments.store.models import comment_rows, conversion

MOST = 5  # Aliases of a site
RENAME = "rename-site"  # The verb in the audit log


def _stored_target(alias: str) -> str:
    row = reads.get(comment_rows.site_alias_key(alias))
    if row is None:
        raise errors.NotFound("site", alias)
    return str(row.site)


COPIES = per_process.PerProcess(lambda: row_copies.RowCopies("SiteAlias", _stored_target))


def canonical_id(name: str) -> str:
    """Return the stored id of the site with this id or alias; `name` itself if there is none."""
    with contextlib.suppress(errors.NotFound):
        return site_settings.kept_site(name).id
    if site_ids.is_site_id(name):
        with contextlib.suppress(errors.NotFound):
            return COPIES.get().get(name)
    return name


def known_id(name: str) -> str:
    """Return the stored id of an active site, or "", without reading the store."""
    for known in (name, COPIES.get().peek(name) or ""):
        if site_settings.is_known(known):
            return known
    return ""


def rename(site_id: str, new: str, actor: records.Actor, *, now: datetime) -> records.Site:
    """Give a site another id for its snippets. The earlier ids remain valid.

    `new` may also be an earlier id of the site.

    Raises:
        errors.NotFound: the site does not exist.
        errors.BadInput: the new id is malformed.
        errors.Conflict: another site has the new id, or the site has `MOST` aliases.
    """
    site_ids.check(new)
    act = audit_log.Act(actor, RENAME)
    keys = [comment_rows.site_key(site_id), comment_rows.site_key(new)]

    def body() -> records.Site:
        row, other, alias = reads.get_multi([*keys, comment_rows.site_alias_key(new)])
        if row is None or row.deleted is not None:
            raise errors.NotFound("site", site_id)
        site = conversion.site_record(row)
        if site.snippet_id == new:
            return site
        is_own = new == site_id or (alias is not None and alias.site == site_id)
        if not is_own and (other is not None or alias is not None):
            raise errors.Conflict("site-exists", field="site", value=new)
        if not is_own:
            _check_number(site_id)
            made = comment_rows.SiteAliasRow(key=comment_rows.site_alias_key(new), site=site_id)
            transactions.apply(ownership.Writes("site_aliases", put=(made,)))
        row.alias = "" if new == site_id else new
        transactions.apply(
            ownership.Writes("site_settings", put=(row,)),
            audit_log.entry_writes(act, site_id, "site", before="", after="", now=now),
        )
        return conversion.site_record(row)

    renamed = transactions.transaction(body)
    site_settings.COPIES.get().drop(site_id)
    COPIES.get().drop(new)
    return renamed


def _check_number(site_id: str) -> None:
    if len(reads.names("SiteAlias", [("site", "=", site_id)], limit=MOST)) >= MOST:
        raise errors.Conflict("too-many-aliases", limit=MOST)
