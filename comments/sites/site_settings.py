"""Add, change and read websites, and keep copies of them in the process.

This module owns the Site rows and their copies in this process (`store.row_copies`), so most
requests do not read the site from the store.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

import msgspec

from comments import errors
from comments.domain import categories, records, site_options
from comments.domain.ids import site_ids, sorthash, thread_ids
from comments.domain.moderation import staff_notices
from comments.domain.text.addresses import mail_addresses, web_origins
from comments.events import audit_log
from comments.limits import budgets, post_limits
from comments.store import ownership, reads, transactions
from comments.store.memory import per_process, row_copies
from comments.store.models import comment_rows, conversion, schema

# Seconds. A longer time would show retracted text for longer than users expect.
LONGEST_CDN = 60
LONGEST_FRESHNESS = 60  # Seconds; directories are read again after this time anyway
LONGEST_TITLE = 60  # Characters
DEMO = "demo"  # The id of the site that a new service shows on its own pages.

# A function that changes a site's Turnstile settings; None means that Turnstile is disabled.
Turned = Callable[[records.Turnstile | None], records.Turnstile | None]


def get(site_id: str) -> records.Site:
    """Return a copy of the site with this id, which may be up to a minute old (`row_copies`).

    Raises:
        errors.NotFound: the site does not exist, or is deleted.
    """
    return _check_is_active(kept_site(site_id))


def current(site_id: str) -> records.Site:
    """Return the site with this id for a decision about a post.

    Raises:
        errors.NotFound: the site does not exist, or is deleted.
    """
    return _check_is_active(COPIES.get().current(_check_id(site_id)))


def kept_site(site_id: str) -> records.Site:
    """Return the same as `get`, but also a deleted site whose rows still exist.

    Raises:
        errors.NotFound: the site does not exist.
    """
    return COPIES.get().get(_check_id(site_id))


def is_active(site_id: str) -> bool:
    """Return whether the site exists and is not deleted, as `current` knows it."""
    with contextlib.suppress(errors.NotFound):
        return bool(current(site_id))
    return False


def is_being_erased(site_id: str) -> bool:
    """Return whether the erasure of the site has begun, as `get` knows it."""
    with contextlib.suppress(errors.NotFound):
        return kept_site(site_id).erasing is not None
    return False


def _check_is_active(site: records.Site) -> records.Site:
    if site.deleted is not None:
        raise errors.NotFound("site", site.id)
    return site


def _check_id(site_id: str) -> str:
    if not site_ids.is_site_id(site_id):
        raise errors.NotFound("site", site_id)
    return site_id


def _stored_site(site_id: str) -> records.Site:
    row = reads.get(comment_rows.site_key(site_id))
    if row is None:
        raise errors.NotFound("site", site_id)
    return conversion.site_record(row)


COPIES = per_process.PerProcess(lambda: row_copies.RowCopies("Site", _stored_site))


def add(
    site_id: str, origins: Sequence[str], *, scheme: sorthash.Scheme, now: datetime, **flags: bool
) -> records.Site:
    """Register a website.

    Raises:
        errors.BadInput: the id or an origin is malformed.
        errors.Conflict: a site with this id already exists.
    """
    site_ids.check(site_id)
    checked = [web_origins.check(origin) for origin in origins]

    def body() -> records.Site:
        keys = [comment_rows.site_key(site_id), comment_rows.site_alias_key(site_id)]
        if any(row is not None for row in reads.get_multi(keys)):
            raise errors.Conflict("site-exists", value=site_id)
        row = comment_rows.SiteRow(
            key=comment_rows.site_key(site_id),
            origins=checked,
            digits=scheme.digits,
            width=scheme.width,
            levels=scheme.levels,
            created=now,
            **flags,
        )
        transactions.apply(ownership.Writes("site_settings", put=(row,)))
        return conversion.site_record(row)

    return transactions.transaction(body)


def change(  # noqa: PLR0913 - each may be changed alone
    site_id: str,
    *,
    title: str | None = None,
    origins: Sequence[str] | None = None,
    added_origins: Sequence[str] = (),
    query_keys: Sequence[str] | None = None,
    cdn_seconds: int | None = None,
    freshness: int | None = None,
    filed: Sequence[str] | None = None,
    moderators: Sequence[str] | None = None,
    guard: dict[str, int | None] | None = None,
    budget: dict[str, int | str] | None = None,
    turnstile: Turned | None = None,
    options: Mapping[str, Any] | None = None,
    noted: audit_log.Noted | None = None,
    is_trial: bool = False,
    **flags: Unpack[thread_ids.RuleFlags],
) -> records.Site:
    """Change the given settings, and return the site. `is_trial` only checks them.

    `origins` replaces the site's origins; `added_origins` extends them. `filed` contains the site's
    categories; existing threads keep their categories.

    `guard` contains some of the site's post limits (see `post_limits.change`), `budget` contains
    some of its daily budgets (see `budgets.change`), `turnstile` changes its Turnstile settings,
    and `options` contains some of its options (see `site_options.change`). With `noted`, the audit
    log records who changed which settings. The log does not contain the values of settings, which
    may be addresses.

    Raises:
        errors.NotFound: the site does not exist.
        errors.BadInput: the title, an origin, a query key, a category or an address is malformed,
            `cdn_seconds` is not 0 to `LONGEST_CDN`, `freshness` is not 0 to `LONGEST_FRESHNESS`, or
            a post limit, a budget or an option is out of range.
    """
    addresses = None if moderators is None else list(map(_moderator, moderators))
    _check_seconds("cdn_seconds", cdn_seconds, LONGEST_CDN)
    _check_seconds("freshness", freshness, LONGEST_FRESHNESS)
    shown = None if title is None else _checked_title(title)
    keys = None if query_keys is None else thread_ids.checked_query_keys(query_keys)
    names = None if filed is None else categories.canonical_set(filed, categories.MOST_OF_SITE)

    def body() -> records.Site:
        row = reads.get(comment_rows.site_key(site_id)) if site_id else None
        if row is None or row.deleted is not None:
            raise errors.NotFound("site", site_id)
        if noted is not None and transactions.may_have_run() and audit_log.is_done(noted.act):
            return conversion.site_record(row)
        before = conversion.site_record(row)
        if origins is not None or added_origins:
            row.origins = _origins(row.origins if origins is None else origins, added_origins)
        row.title = row.title if shown is None else shown
        row.query_keys = row.query_keys if keys is None else list(keys)
        seconds = {"cdn_seconds": cdn_seconds, "freshness": freshness}
        row.populate(**flags, **{name: n for name, n in seconds.items() if n is not None})
        row.categories = row.categories if names is None else list(names)
        row.moderators, row.notices = _recipients(row, addresses)
        row.guard = row.guard if guard is None else _guard(row, guard)
        row.budget = row.budget if budget is None else _budget(row, budget)
        row.turnstile = row.turnstile if turnstile is None else _change_turnstile(row, turnstile)
        row.options = row.options if options is None else _options(row, options)
        after = conversion.site_record(row)
        if is_trial:
            return after
        transactions.apply(
            ownership.Writes("site_settings", put=(row,)), *_audit_writes(noted, before, after)
        )
        return after

    changed = transactions.transaction(body)
    COPIES.get().drop(site_id)
    return changed


def _check_seconds(field: str, given: int | None, most: int) -> None:
    if given is not None and not 0 <= given <= most:
        raise errors.BadInput(field, "out-of-range", minimum=0, maximum=most)


def _checked_title(given: str) -> str:
    title = given.strip()
    if len(title) > LONGEST_TITLE or not title.isprintable():
        raise errors.BadInput("title", "not-one-line", limit=LONGEST_TITLE)
    return title


def _origins(kept: Sequence[str], added: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(map(web_origins.check, (*kept, *added))))


def _recipients(row: comment_rows.SiteRow, given: list[str] | None) -> tuple[list[str], str]:
    addresses = row.moderators if given is None else given
    return addresses, staff_notices.prune(row.notices or "", addresses)


def mark_providers(having: Mapping[str, bool]) -> None:
    """Mark which of these sites have a provider, in the transaction that changes providers.

    Pages show whether readers can sign in. With this mark, pages need not read the providers.
    """
    for site_id, has_providers in having.items():
        row = reads.get(comment_rows.site_key(site_id))
        if row is None or bool(row.has_providers) is has_providers:
            continue
        row.has_providers = has_providers
        transactions.apply(ownership.Writes("site_settings", put=(row,)))
        transactions.afterwards(functools.partial(COPIES.get().drop, site_id))


def is_known(site_id: str) -> bool:
    """Return whether this process has a copy of an active site, without reading the store."""
    copy = COPIES.get().peek(site_id)
    return copy is not None and copy.deleted is None


def _change_turnstile(row: comment_rows.SiteRow, change: Turned) -> str:
    changed = change(conversion.site_record(row).turnstile)
    return "" if changed is None else msgspec.json.encode(changed).decode()


def _guard(row: comment_rows.SiteRow, given: dict[str, int | None]) -> str:
    changed = post_limits.change(conversion.site_record(row).guard, given)
    return msgspec.json.encode(changed).decode()


def _budget(row: comment_rows.SiteRow, given: dict[str, int | str]) -> str:
    budget = conversion.site_record(row).budget
    for name, value in given.items():
        budget = budgets.change(budget, name, value)
    return msgspec.json.encode(budget).decode()


def _options(row: comment_rows.SiteRow, given: Mapping[str, Any]) -> str:
    changed = site_options.change(conversion.site_record(row).options, given)
    return msgspec.json.encode(changed).decode()


def _audit_writes(
    noted: audit_log.Noted | None, before: records.Site, after: records.Site
) -> Iterator[ownership.Writes]:
    names = [*_changed_fields(before, after)]
    if "options" in names:
        place = names.index("options")
        names[place : place + 1] = _changed_fields(before.options, after.options)
    if noted is not None and names:
        text = ", ".join(names)
        yield audit_log.entry_writes(
            noted.act, before.id, "site", before="", after=text, now=noted.now
        )


def _changed_fields(before: msgspec.Struct, after: msgspec.Struct) -> Iterator[str]:
    for name in before.__struct_fields__:
        if getattr(before, name) != getattr(after, name):
            yield name


def every() -> list[records.Site]:
    """List all sites that are not deleted, sorted by id."""
    return [site for site in every_kept() if site.deleted is None]


def every_kept() -> list[records.Site]:
    """List all sites, including deleted ones, sorted by id."""
    return [conversion.site_record(row) for row in _every_row()]


def names() -> list[str]:
    """List the ids of all sites, sorted."""
    return reads.names("Site")


def _every_row() -> list[comment_rows.SiteRow]:
    rows = reads.get_multi([comment_rows.site_key(name) for name in names()])
    return [row for row in rows if row is not None]


def prepare_demo(
    origins: Sequence[str], *, scheme: sorthash.Scheme, now: datetime
) -> records.Site | None:
    """Add the site `DEMO` if no site exists, so that a new installation has a site to show.

    Return the site if this call has added it.
    """
    if every_kept():
        return None
    # If two processes start with the same new folder, the second process finds that the site
    # exists.
    with contextlib.suppress(errors.Conflict):
        return add(DEMO, origins, scheme=scheme, now=now)
    return None


def check_levels(scheme: sorthash.Scheme) -> None:
    """Check that SORT_HASH_LEVELS was not lowered below the levels of an existing site.

    The SORT_HASH_* settings apply to new sites only, so all other changes are accepted. A site from
    a release that did not store its number of levels gets the number in `scheme`.

    Raises:
        errors.Misconfigured: the message names the site and the commands that help.
    """
    for site in _every_row():
        if not site.levels:
            transactions.transaction(functools.partial(_adopt_levels, site.key, scheme.levels))
        elif site.levels > scheme.levels and not site.reshaped:
            raise errors.Misconfigured(
                f"SORT_HASH_LEVELS is {scheme.levels}, but site {site.key.id()} has {site.levels} "
                "levels. The setting applies to new sites only. To lower the site's levels, run "
                f"`flatthread site rescheme {site.key.id()} --levels {scheme.levels}`; to "
                f"keep them, run it with --levels {site.levels}"
            )


def _adopt_levels(key: schema.RowKey, levels: int) -> None:
    row = reads.get(key)
    if row is not None and not row.levels:
        row.levels = levels
        transactions.apply(ownership.Writes("site_settings", put=(row,)))


def checked_scheme(
    now: sorthash.Scheme, *, levels: int | None, width: int | None, digits: str | None
) -> sorthash.Scheme:
    """Return the scheme `now` with the given changes.

    Raises:
        errors.BadInput: a value is not valid; the error names the field.
    """
    for field, given, most in (
        ("levels", levels, sorthash.MOST_LEVELS),
        ("width", width, sorthash.MOST_WIDTH),
    ):
        if given is not None and not 1 <= given <= most:
            raise errors.BadInput(field, "out-of-range", minimum=1, maximum=most)
    try:
        return sorthash.Scheme(
            now.digits if digits is None else digits,
            now.width if width is None else width,
            now.levels if levels is None else levels,
        )
    except sorthash.BadSortHash as error:
        raise errors.BadInput("digits", "bad-digits") from error


def stored_scheme(row: comment_rows.SiteRow) -> sorthash.Scheme:
    """Return the scheme in a site's row."""
    return conversion.site_record(row).scheme


def scheme_writes(row: comment_rows.SiteRow, scheme: sorthash.Scheme) -> ownership.Writes:
    """Give a site another scheme, for the job `rescheming`. Existing threads keep their schemes."""
    row.digits, row.width, row.levels = scheme.digits, scheme.width, scheme.levels
    row.reshaped = True
    return ownership.Writes("site_settings", put=(row,))


def scheme_of(site_id: str) -> sorthash.Scheme:
    """Return the scheme of a site's sort hashes, or the default if the site does not exist."""
    try:
        return kept_site(site_id).scheme
    except errors.NotFound:
        return sorthash.Scheme()


def _moderator(address: str) -> str:
    try:
        return mail_addresses.check(address)
    except errors.BadInput as error:
        raise error.about("moderators") from error
