"""Produce the lines of a site's export from one moment's state, in bounded memory.

    def write(lines: Iterator[export_lines.Line]) -> None: ...
    site_contents.read(site, write, choices=choices, secret=secret, now=now)

Threads are read in the order of their key names. This is the order of their ids, except that ids of
more than 500 bytes come first. The comments of a thread are read in reading order, so a parent
precedes its replies.

All lines are from one read-only transaction. A store ends such a transaction after some minutes, so
the export of a site fails if reading takes longer than `reads.LONGEST` seconds. The numbers of
votes include votes that were cast but are not counted yet, so an export does not depend on when
votes are counted. Only the votes of one thread and the rows of one batch are in memory at a time.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.counters import declared_counters
from comments.domain.crypto import guest_addresses
from comments.domain.ids import imported_ids, thread_ids
from comments.domain.records import Status
from comments.domain.text import rendering, sanitizing
from comments.moderation.policy import rulebook, rules
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.threads import naming, thread_aliases
from comments.transfer.exporting import export_lines
from comments.tree import votes
from comments.tree.counters.declared import declarations

T = TypeVar("T")

_MARKUPS: Mapping[str, export_lines.Markup] = {"markdown": "markdown", "html": "html"}
_AUDIT_TEXTS = ("subject", "verb", "actor", "actor_name", "before", "after", "reason")
_RENDERERS = {rendering.RENDERER, sanitizing.SANITISER, ""}


class Choices(msgspec.Struct, frozen=True):
    """What an export includes in addition to settings, counters, threads, comments and votes."""

    addresses: bool = False
    audit_log: bool = False

    def names(self) -> tuple[str, ...]:
        """Return the names of the included parts, as they appear in the header."""
        chosen = {
            export_lines.ADDRESSES: self.addresses,
            export_lines.AUDIT_LOG: self.audit_log,
        }
        return tuple(name for name, is_chosen in chosen.items() if is_chosen)


def read(
    site_id: str,
    use: Callable[[Iterator[export_lines.Line]], T],
    *,
    choices: Choices,
    secret: str,
    now: datetime,
) -> T:
    """Call `use` with the lines of a site, and return its result.

    If the store fails before the end, `use` is called again with all lines from the start. `secret`
    decrypts addresses.

    Raises:
        errors.NotFound: the site does not exist.
        errors.ExportFailed: reading the site took longer than `reads.LONGEST` seconds.
        errors.Overloaded: the store did not answer in time.
    """

    def body() -> T:
        return use(_in_time(site_id, _Contents(site_id, choices, secret, now).lines()))

    with connection.within(reads.LONGEST):
        return transactions.at_one_moment(body)


def _in_time(site_id: str, lines: Iterator[export_lines.Line]) -> Iterator[export_lines.Line]:
    for line in lines:
        if not connection.seconds_left():
            reason = (
                f"reading the site took longer than {reads.LONGEST:.0f} seconds, after which a "
                "store gives no consistent view. Try again when the store is less busy, or make a "
                "backup of the whole store"
            )
            raise errors.ExportFailed(f"the export of {site_id}", reason)
        yield line


class _Contents:
    """The lines of one site, read in the current transaction."""

    def __init__(self, site_id: str, choices: Choices, secret: str, now: datetime) -> None:
        self._id = site_id
        self._choices = choices
        self._secret = secret
        self._now = now
        self._aliases: dict[str, list[str]] = {}

    def lines(self) -> Iterator[export_lines.Line]:
        row = reads.get(comment_rows.site_key(self._id))
        if row is None:
            raise errors.NotFound("site", self._id)
        site = conversion.site_record(row)
        self._aliases = thread_aliases.of_site(self._id) if site.moves else {}
        yield self._settings(site)
        for counter in declarations.of_site(self._id).counters:
            yield counter_line(counter.declaration)
        query = reads.Query("Thread", where=(("site", "=", self._id),), order=("__key__",))
        for message in reads.fetch(query):
            yield from self._thread(message)
        if self._choices.audit_log:
            yield from _audit_log(self._id)

    def _settings(self, site: records.Site) -> export_lines.SettingsLine:
        book = rulebook.from_store(self._id)
        return export_lines.SettingsLine(
            origins=site.origins,
            scheme=export_lines.TreeScheme(site.digits, site.width, site.levels),
            title=site.title,
            **thread_ids.rules_of(site),
            cdn_seconds=site.cdn_seconds,
            freshness=site.freshness,
            categories=site.categories,
            moderators=site.moderators if self._choices.addresses else (),
            post_limits=site.guard,
            budget=site.budget,
            options=site.options,
            moderation=export_lines.ExportedModeration(
                policy=book.policy,
                close_after=book.close_after,
                reports=book.reports,
                rules=tuple(map(_rule, filter(self._may_export, book.rules))),
                bans=tuple(
                    export_lines.ExportedBan(ban.author, ban.until, ban.is_shadow)
                    for ban in book.bans
                    if ban.is_active(self._now)
                ),
            ),
        )

    def _may_export(self, rule: rules.Rule) -> bool:
        # A rule without its networks would match more comments than intended.
        return self._choices.addresses or not rule.networks

    def _thread(self, message: Any) -> Iterator[export_lines.Line]:
        stored = message.properties
        name = records.ThreadName(self._id, stored["thread"].string_value)
        key = message.key.path[-1].name
        shown, aliases = stored["alias"].string_value or name.id, self._aliases.get(key, [])
        page = export_lines.ExportedPage(
            stored["title"].string_value,
            stored["url"].string_value,
            conversion.texts(stored["categories"]),
        )
        policy = stored["policy"].string_value
        yield export_lines.ThreadLine(
            id=shown,
            title=page.title,
            url=page.url,
            state=records.ThreadState(stored["state"].string_value),
            policy=records.Policy(policy) if policy else None,
            categories=page.categories,
            created=conversion.stored_time(message, "created"),
            own=conversion.texts(stored["own"]),
            named_by=stored["named_by"].string_value,
            aliases=tuple(other for other in (name.id, *aliases) if other != shown),
        )
        query = reads.Query("Comment", where=(("thread", "=", key),), order=("sort_hash",))
        cast = votes.by_comment(name)
        for comment in reads.fetch(query):
            given = cast.get(comment.key.path[-1].name, {})
            yield self._comment(comment, given, page, shown)

    def _comment(
        self, message: Any, cast: Mapping[str, int], page: export_lines.ExportedPage, thread: str
    ) -> export_lines.CommentLine:
        stored = message.properties
        case = conversion.case_from_message(message)
        row, author = case.comment, case.comment.author
        if row.status is Status.RETRACTED:
            cast = {}  # The next vote count deletes the votes on a retracted comment.
        up, down = (
            getattr(row, side)
            - stored[f"cast_{side}"].integer_value
            + sum(1 for vote in cast.values() if vote == value)
            for side, value in (("up", votes.UP), ("down", votes.DOWN))
        )
        email = author.email if self._choices.addresses else ""
        renderer = stored["renderer"].string_value
        return export_lines.CommentLine(
            id=row.id,
            thread=thread,
            number=row.number,
            slug=row.slug,
            status=row.status,
            created=row.created,
            parent=row.parent,
            reply_to=row.reply_to,
            author=export_lines.ExportedAuthor(
                id=author.id,
                name=author.name,
                website=author.website,
                email=guest_addresses.address(email, self._secret, now=self._now),
                staff=author.is_staff,
            ),
            markup=_MARKUPS.get(renderer.partition("-")[0], "markdown"),
            text=row.body,
            html="" if renderer in _RENDERERS else row.html,
            edited=row.edited,
            edited_by_staff=row.edited_by_staff,
            up=up,
            down=down,
            votes=dict(sorted(cast.items())),
            pinned=row.pinned,
            rule=case.rule,
            why=case.why,
            reasons=case.reasons,
            stood=case.stood,
            judged=case.judged,
            source=_source(stored["source"].string_value),
            former_slugs=conversion.texts(stored["former_slugs"]),
            page=_page(row.status, case.brought, page),
        )


def _source(stored: str) -> str:
    """Return the system that a comment comes from; "" if that was Flatthread."""
    return "" if stored.startswith(f"{imported_ids.OWN}:") else stored


def counter_line(declared: declared_counters.Declaration) -> export_lines.CounterLine:
    """Return the line of a declared counter."""
    return export_lines.CounterLine(
        name=declared.name,
        where=tuple(map(str, declared.where)),
        by=tuple(declared.by),
        sum=declared.sum,
    )


def _rule(rule: rules.Rule) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(rule)
    return fields


def _page(
    status: Status, brought: str, thread: export_lines.ExportedPage
) -> export_lines.ExportedPage | msgspec.UnsetType | None:
    """Return a comment's thread data: None if unknown, UNSET if erased or equal to the thread's."""
    if status is Status.RETRACTED:
        return msgspec.UNSET
    if not brought:
        return None
    own_page = naming.decode(brought)
    page = export_lines.ExportedPage(own_page.title, own_page.url, tuple(own_page.categories))
    return msgspec.UNSET if page == thread else page


def _audit_log(site: str) -> Iterator[export_lines.AuditLine]:
    query = reads.Query("AuditEntry", where=(("site", "=", site),), order=("-at",))
    lines = map(_audit, reads.fetch(query))
    for _, entries in itertools.groupby(lines, key=lambda each: each.at):
        yield from sorted(entries, key=lambda each: each.id)


def _audit(message: Any) -> export_lines.AuditLine:
    stored = message.properties
    return export_lines.AuditLine(
        id=message.key.path[-1].name,
        at=stored["at"].timestamp_value.ToDatetime(UTC),
        **{name: stored[name].string_value for name in _AUDIT_TEXTS},
    )
