"""List, show, change and rebuild threads: `thread list|show|set|rebuild` and more."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypeVar

import click
import msgspec

from comments.cli import console
from comments.cli.commands import (
    bulk_commands,
    compaction_commands,
    moderation_commands,
    move_commands,
)
from comments.domain import categories, decoders, records
from comments.domain.counters import counting
from comments.domain.text import tables
from comments.domain.text.shown_values import quantity
from comments.moderation import thread_list
from comments.moderation.policy import thread_overrides
from comments.notifications import follower_addresses, reader_follows, thread_followers
from comments.reading import tree_table
from comments.transfer.moves import doubled_threads
from comments.tree.counters import totals
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler

Line = TypeVar("Line", bound=msgspec.Struct)

thread = console.Group("thread")
_THREAD = click.argument("thread_id", metavar="THREAD")
for _command in move_commands.COMMANDS:
    thread.add_command(_command)
_json = click.option("--json", "is_json", is_flag=True, help="Print JSON, with all stored values.")


class _ListedThread(msgspec.Struct, frozen=True):
    """One line of `thread list`. `comments` is the number of comments that readers see."""

    thread: str
    comments: int
    state: records.ThreadState
    created: datetime | None
    title: str
    url: str


class _ListedFollower(msgspec.Struct, frozen=True):
    """A reader who agreed to be listed, by the reader's id and chosen name."""

    author: str
    name: str
    since: datetime | None


class _Followers(msgspec.Struct, frozen=True):
    """The output of `thread followers --json`. Lists that were not requested are null."""

    followers: int
    mail: int
    readers: int
    addresses: list[str] | None
    names: list[_ListedFollower] | None


class _Hashes(msgspec.Struct, frozen=True):
    """One line of `thread show --hashes`."""

    padded: str
    stored: str
    slug: str


class _Line(msgspec.Struct, frozen=True):
    """One line of `thread show`. `bucket` is a number, "tail" or ""."""

    padded: str
    stored: str
    slug: str
    level: int
    number: int
    children: int
    parent: str
    reply_to: str
    status: records.Status
    bucket: str
    waiting: str
    author: str


@thread.command("list", console.SITE)
@bulk_commands.CATEGORY
@_json
def _list_threads(site_id: str, *, category: str, is_json: bool) -> None:
    """List a site's threads, newest first, with the number of comments that readers see."""
    lines = list(_threads(console.site(site_id).id, categories.canonical_term(category)))
    _print(_ListedThread, lines, is_json=is_json)


def _threads(site_id: str, category: str) -> Iterator[_ListedThread]:

    cursor, secret = None, console.settings().secret
    while True:
        page = thread_list.threads(site_id, category, limit=100, cursor=cursor, secret=secret)
        numbers = totals.of_threads([row.name for row in page.threads])
        for row, counted in zip(page.threads, numbers, strict=True):
            visible = counted.get(counting.LISTED, 0)
            yield _ListedThread(row.shown_id, visible, row.state, row.created, row.title, row.url)
        cursor = page.cursor
        if cursor is None:
            return


@thread.command("show", console.SITE, _THREAD)
@click.option("--hashes", is_flag=True, help="Print only the hashes and the slugs.")
@click.option(
    "--raw", is_flag=True, help="Print the ids of comments and the keys of buckets, as stored."
)
@_json
def _show_thread(site_id: str, thread_id: str, *, hashes: bool, raw: bool, is_json: bool) -> None:
    """Show all comments of a thread in reading order, with their places in the tree.

    Each line contains the comment's sort hash (padded, and as stored), its slug, its level, its
    number among its siblings, the counter of its replies, its parent, the comment that it answers,
    its status, its bucket, whether a change is waiting to be compacted, and the author. Parents are
    slugs and buckets are numbers, unless --raw or --json is given. The bucket is empty if readers
    cannot see the comment or if it was never compacted.
    """
    if hashes and raw:
        raise click.ClickException("--hashes and --raw cannot be combined.")
    name = console.thread(site_id, thread_id)
    table = tree_table.of(ordered_query.scheme_of(name), name)
    if hashes:
        short = [_Hashes(line.padded, line.stored, line.slug) for line in table.lines]
        _print(_Hashes, short, is_json=is_json)
    elif raw or is_json:
        _print(tree_table.TreeLine, table.lines, is_json=is_json)
    else:
        _print(_Line, _readable(table), is_json=False)
    if not is_json:
        waiting = sum(line.waiting for line in table.lines)
        click.echo(
            f"{quantity(len(table.lines), 'comment')}, "
            f"{quantity(len(table.buckets), 'bucket')}, {waiting} waiting to be compacted.",
            err=True,
        )


def _readable(table: "tree_table.TreeTable") -> list[_Line]:
    """Replace ids by slugs and the keys of buckets by their numbers."""
    slugs = {line.id: line.slug for line in table.lines}
    numbers = {key: str(number) for number, key in enumerate(table.buckets, 1)}
    shown = (
        msgspec.structs.asdict(line)
        | {
            "parent": slugs.get(line.parent or "", line.parent or ""),
            "reply_to": slugs.get(line.reply_to or "", line.reply_to or ""),
            "bucket": numbers.get(line.bucket, line.bucket),
            "waiting": "waiting" if line.waiting else "",
        }
        for line in table.lines
    )
    return [decoders.convert(row, _Line) for row in shown]


def _print(kind: type[Line], lines: Sequence[Line], *, is_json: bool) -> None:
    form = tables.TableFormat.JSON if is_json else tables.TableFormat.TABLE
    click.echo(tables.format_table(kind, lines, form))


@thread.command("followers", console.SITE, _THREAD)
@click.option("--addresses", is_flag=True, help="List the addresses whose owners agreed.")
@click.option("--names", is_flag=True, help="List the readers without mail who agreed.")
@click.option("--reason", default="", help="Reason for the list, for the audit log.")
@_json
def _show_followers(
    site_id: str, thread_id: str, *, addresses: bool, names: bool, reason: str, is_json: bool
) -> None:
    """Count a thread's followers, and list those whom the site's owner may see.

    The list of addresses contains only those of subscribers who agreed when they confirmed the
    subscription. Each use of this list is recorded in the audit log. The list of names contains
    each reader who follows without mail and gave a name for this list, with the reader's id.
    """
    name = console.thread(site_id, thread_id)
    followers = thread_followers.count(name)
    listed: list[str] = []
    if addresses:
        secret, now = console.settings().secret, console.now()
        actor = moderation_commands.ACTOR
        listed += follower_addresses.list_addresses(
            name, actor, secret=secret, now=now, reason=reason
        )
    by_mail = followers.all - followers.readers
    named = list(_listed_followers(name)) if names else None
    if is_json:
        shown = _Followers(
            followers.all, by_mail, followers.readers, listed if addresses else None, named
        )
        click.echo(msgspec.json.encode(shown).decode())
        return
    click.echo(
        f"{quantity(followers.all, 'follower')}: {by_mail} by mail, {followers.readers} without."
    )
    for address in listed:
        click.echo(address)
    for follower in named or ():
        click.echo(f"{follower.name} ({follower.author})")


def _listed_followers(name: records.ThreadName) -> Iterator[_ListedFollower]:
    after: str | None = ""
    while after is not None:
        page = reader_follows.listed_followers(name, after=after, limit=1_000)
        for line in page.lines:
            yield _ListedFollower(line.author, line.name, line.since)
        after = page.after


@thread.command("set", console.SITE, _THREAD)
@click.option("--title", help='Title of the thread; "" for none.')
@click.option("--url", help='Address of its page; "" for none.')
@click.option("--category", "names", multiple=True, help="Categories; replaces all.")
@click.option("--no-category", is_flag=True, help="Remove all categories.")
@click.option(
    "--inherit", "inherits", multiple=True, type=click.Choice(["title", "url", "categories"]),
    help="Inherit the values from the oldest approved comment again.",
)  # fmt: skip
@click.option("--reason", default="", help="Reason, for the audit log.")
def _set_thread(
    site_id: str,
    thread_id: str,
    *,
    title: str | None,
    url: str | None,
    names: tuple[str, ...],
    inherits: tuple[str, ...],
    reason: str,
    no_category: bool,
) -> None:
    """Set a thread's title, page address and categories.

    Values set here override those from comments, until you reset them with --inherit. All comments
    of the thread are counted under its categories. The service can keep running. An interrupted
    change continues by itself, or when you run the command again.
    """
    if names and no_category:
        raise click.ClickException("--category and --no-category cannot be combined.")
    listed = names if names or no_category else None
    if title is None and url is None and listed is None and not inherits:
        raise click.ClickException(
            "Nothing to change. Use --title, --url, --category, --no-category or --inherit."
        )
    name = console.thread(site_id, thread_id)
    change = thread_overrides.change_details(
        console.site(site_id), name.id,
        thread_overrides.NewDetails(title, url, listed, inherits),
        moderation_commands.ACTOR, now=console.now(), reason=reason,
    )  # fmt: skip
    click.echo(f"Moved {quantity(change.moved, 'comment')}.")
    for field in thread_overrides.FIELDS:
        value = getattr(change.thread, field)
        by = "a moderator" if field in change.thread.own else "the oldest approved comment"
        click.echo(f"{field}\t{value if isinstance(value, str) else ', '.join(value)}\t{by}")


@thread.command("doubles", console.SITE, _json)
def _find_doubles(site_id: str, *, is_json: bool) -> None:
    """List threads that have comments in common: the same author, time and text.

    They are probably one page under two addresses. Each line names the larger thread, the other
    one, the number of comments in both, and the number of comments that readers see in the other
    one. The command reads all published and pending comments of the site and changes nothing.
    `thread merge` keeps one copy of each comment.
    """
    doubles = doubled_threads.find(console.site(site_id))
    _print(doubled_threads.DoubledThreads, doubles, is_json=is_json)


@thread.command("rebuild", console.SITE)
@click.argument("thread_id", metavar="[THREAD]", required=False)
@click.option("--wait/--no-wait", default=False, help="Wait and clean up in this command.")
def _rebuild(site_id: str, thread_id: str | None, *, wait: bool) -> None:
    """Rebuild the pages of a site's threads, or of one thread, from the comments.

    Use this command if something other than the service has changed comments, such as a restore or
    a script. The service can keep running: as soon as the rebuild of a thread begins, readers see
    its comments as they are stored.
    """
    names = compaction_commands.threads(site_id, thread_id)
    done = scheduler.rebuild_whole(names, wait=compaction_commands.sleep if wait else None)
    compaction_commands.report("Rebuilt", done)
