"""Apply the settings, counters and audit log of a Flatthread export to a site.

    parts = site_restore.read(path)
    site_restore.apply_settings(journal, parts, now=now)
    site_restore.declare_counters(journal, parts, now=now)
    site_restore.add_audit_log(journal, path, plan.id_of, now=now)

`read` checks all values, so a dry run finds invalid values. Applying a part again changes nothing.
The settings in the file replace those of the site, except for secrets, which an export does not
contain.

The journal of the import (`import_journal`) records what was applied. Undoing the import removes
the counters and the audit log entries, but cannot bring back the previous settings.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from comments import errors
from comments.domain import categories, decoders, records, site_options
from comments.domain.counters import declared_counters
from comments.domain.counters.declared_counters import Declaration
from comments.domain.ids import sorthash, thread_ids
from comments.domain.languages import error_texts
from comments.domain.text.addresses import mail_addresses, web_origins
from comments.events import audit_log
from comments.limits import budgets, post_limits
from comments.moderation.policy import rulebook, rules
from comments.sites import site_settings
from comments.store import reads, transactions
from comments.store.models import comment_rows
from comments.threads import thread_info
from comments.transfer.exporting import export_lines
from comments.transfer.importing import import_journal, running_import
from comments.transfer.own_format import export_reader
from comments.tree.counters.declared import declarations, declared_backfill

AT_ONCE = 100  # Audit log entries per transaction


class SiteParts(NamedTuple):
    """The settings and the declared counters in a file."""

    settings: export_lines.SettingsLine | None
    scheme: sorthash.Scheme | None
    counters: tuple[Declaration, ...]


def read(path: Path) -> SiteParts:
    """Read and check a file's settings, counters and audit log.

    If several counters have the same name, only the first one is kept.

    Raises:
        errors.BadImport: a value is not valid; the error names the line.
    """
    settings: export_lines.SettingsLine | None = None
    scheme: sorthash.Scheme | None = None
    counters: dict[str, Declaration] = {}
    for line in export_reader.read(path):
        try:
            match line.value:
                case export_lines.SettingsLine():
                    settings = line.value
                    scheme = _check_settings(settings)
                case export_lines.CounterLine() as given:
                    counter = declared_counters.declare(
                        given.name, given.where, given.by, given.sum
                    )
                    counters.setdefault(counter.name, counter)
                case export_lines.AuditLine():
                    _check_entry(line.value)
                case _:
                    pass
        except errors.BadInput as error:
            message = error_texts.sentence(error)
            raise errors.BadImport(str(path), line.number, message) from error
    return SiteParts(settings, scheme, tuple(counters.values()))


def _check_settings(settings: export_lines.SettingsLine) -> sorthash.Scheme:
    """Check a site's settings, and return the scheme of its sort hashes."""
    for origin in settings.origins:
        web_origins.check(origin)
    thread_ids.checked_query_keys(settings.query_keys)
    categories.canonical_set(settings.categories, categories.MOST_OF_SITE)
    for address in settings.moderators:
        mail_addresses.check(address)
    post_limits.change(records.OwnPostLimits(), _values(settings.post_limits))
    for name, value in _values(settings.budget).items():
        budgets.change(records.Budget(), name, value)
    site_options.change(site_options.SiteOptions(), _values(settings.options))
    _rules(settings.moderation)
    given = settings.scheme
    return site_settings.checked_scheme(
        sorthash.Scheme(), levels=given.levels, width=given.width, digits=given.digits
    )


def _values(struct: msgspec.Struct) -> dict[str, Any]:
    return msgspec.structs.asdict(struct)


def _rules(given: export_lines.ExportedModeration) -> tuple[rules.Rule, ...]:
    try:
        site_rules = tuple(decoders.convert(rule, rules.Rule) for rule in given.rules)
    except msgspec.ValidationError as error:
        raise errors.BadInput("rules", "unknown-value", allowed=str(error)) from error
    for rule in site_rules:
        rules.check(rule)
    return site_rules


def _check_entry(entry: export_lines.AuditLine) -> None:
    if not comment_rows.is_comment_id(entry.id):
        raise errors.BadInput("id", "bad-id", limit=26)
    texts = (entry.subject, entry.verb, entry.actor, entry.actor_name, entry.before, entry.after)
    if not all(map(str.isprintable, (*texts, entry.reason))):
        raise errors.BadInput("audit", "not-one-line", limit=audit_log.LONGEST_REASON)


def apply_settings(
    journal: running_import.RunningImport, parts: SiteParts, *, now: datetime
) -> None:
    """Replace a site's settings and moderation settings with those in the file.

    The scheme of sort hashes is applied only if the site has no threads. If the site has already
    banned an author, that ban does not change.
    """
    settings, site_id = parts.settings, journal.site
    if settings is None:
        return
    journal.note_settings()
    if parts.scheme is not None and not thread_info.has_threads(site_id):
        _set_scheme(site_id, parts.scheme)
    site_settings.change(
        site_id,
        title=settings.title,
        origins=settings.origins,
        **{name: getattr(settings, name) for name in thread_ids.RULES},
        cdn_seconds=settings.cdn_seconds,
        freshness=settings.freshness,
        filed=settings.categories,
        moderators=settings.moderators or None,
        guard=_values(settings.post_limits),
        budget=_values(settings.budget),
        options=_values(settings.options),
    )
    _restore_moderation(site_id, settings.moderation, now)


def _set_scheme(site_id: str, scheme: sorthash.Scheme) -> None:
    def body() -> None:
        row = reads.get(comment_rows.site_key(site_id))
        if row is not None and site_settings.stored_scheme(row) != scheme:
            transactions.apply(site_settings.scheme_writes(row, scheme))

    transactions.transaction(body)
    site_settings.COPIES.get().drop(site_id)


def _restore_moderation(
    site_id: str, given: export_lines.ExportedModeration, now: datetime
) -> None:
    added = [rulebook.Ban(ban.author, ban.until, ban.shadow) for ban in given.bans]

    def change(book: rulebook.Rulebook) -> rulebook.Rulebook:
        known = {ban.author for ban in book.bans}
        return msgspec.structs.replace(
            book,
            policy=given.policy,
            close_after=given.close_after,
            reports=given.reports,
            rules=_rules(given),
            bans=(*book.bans, *(ban for ban in added if ban.author not in known)),
        )

    def body() -> None:
        before, after, writes = rulebook.change_writes(site_id, change, now=now)
        if before != after:
            transactions.apply(writes)

    transactions.transaction(body)
    rulebook.forget(site_id)


def declare_counters(
    journal: running_import.RunningImport, parts: SiteParts, *, now: datetime
) -> tuple[list[str], list[str]]:
    """Declare the counters that the site does not have yet, and count existing comments in them.

    Return the names of the new counters, and of those in the file that the site already has.
    """
    site_id = journal.site
    known = declarations.of_site(site_id)
    new = [counter for counter in parts.counters if known.get(counter.name) is None]
    present = [counter.name for counter in parts.counters if known.get(counter.name) is not None]
    journal.note_counters(new)
    for counter in new:
        declarations.add(site_id, counter, now=now)
    if new:
        declared_backfill.complete(site_id)
    return [counter.name for counter in new], present


def add_audit_log(
    journal: running_import.RunningImport,
    path: Path,
    id_of: Callable[[str], str],
    *,
    now: datetime,
) -> tuple[int, int]:
    """Add the entries in a file to the site's audit log, except those that are already in it.

    `id_of` returns the id under which a comment of the file is stored. Return the number of added
    entries and the number of entries that already existed.
    """
    added = present = 0
    for number, part in enumerate(_parts(path)):
        entries = [_entry(journal.site, line, id_of) for line in part]
        add = functools.partial(_add, journal, number, entries, now)
        more = transactions.transaction(add)
        added += more
        present += len(part) - more
    return added, present


def _parts(path: Path) -> Iterator[list[export_lines.AuditLine]]:
    entries = (
        line.value
        for line in export_reader.read(path)
        if isinstance(line.value, export_lines.AuditLine)
    )
    return iter(lambda: list(itertools.islice(entries, AT_ONCE)), [])


def _add(
    journal: running_import.RunningImport,
    number: int,
    found: Sequence[records.Audit],
    now: datetime,
) -> int:
    writes = audit_log.import_writes(found)
    entries = tuple(row.key.id() for row in writes.insert)
    batch = import_journal.Batch((), entries=entries)
    transactions.apply(writes, journal.batch_writes(number, batch, now))
    return len(entries)


def _entry(
    site_id: str, line: export_lines.AuditLine, id_of: Callable[[str], str]
) -> records.Audit:
    is_comment = comment_rows.is_comment_id(line.subject)
    at = line.at.replace(tzinfo=UTC) if line.at.tzinfo is None else line.at.astimezone(UTC)
    return records.Audit(
        id=line.id,
        site=site_id,
        subject=id_of(line.subject) if is_comment else line.subject,
        verb=line.verb,
        actor=records.Actor(line.actor, line.actor_name),
        at=at,
        before=line.before,
        after=line.after,
        reason=line.reason,
    )
