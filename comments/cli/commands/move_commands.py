"""Move, merge and split threads: `thread move|merge|split|moves|unmove`.

`thread_commands` adds these commands to `thread`.
"""

from datetime import datetime
from typing import TextIO

import click
import msgspec

from comments.cli import console, import_files
from comments.cli.commands import moderation_commands
from comments.domain import records
from comments.domain.text import tables
from comments.domain.text.shown_values import quantity
from comments.transfer.checking import page_mapping
from comments.transfer.moves import (
    join_plan,
    move_journal,
    move_plan,
    thread_joins,
    thread_moves,
)

_json = click.option("--json", "is_json", is_flag=True, help="Print JSON, with all stored values.")
_confirmed = click.option("--yes", "confirmed", is_flag=True, help="Store the change.")


class _ListedMove(msgspec.Struct, frozen=True):
    """One line of `thread moves`. The last three values are numbers of threads."""

    move: str
    began: datetime
    state: str
    by: str
    what: str
    threads: int
    moved: int
    restored: int


@console.command("move", console.SITE)
@click.argument("old", required=False)
@click.argument("new", required=False)
@click.option("--list", "file", type=click.File(encoding="utf-8"), help="CSV file: old,new.")
@import_files.mapping_option
@click.option("--dry-run", is_flag=True, help="Say what would move, but store nothing.")
def _move_threads(
    site_id: str,
    old: str | None,
    new: str | None,
    *,
    file: TextIO | None,
    mapping: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Move threads to the new addresses of their pages.

    Name the thread OLD and its NEW id or address, a list of such pairs (--list), or mappings of
    hosts, paths and patterns (--map). The old addresses continue to work. A thread never moves to
    an address that leads to another thread. An interrupted move continues by itself.
    """
    if ((old is not None) + (file is not None) + bool(mapping)) != 1 or (old and not new):
        raise click.ClickException("Enter either OLD and NEW, --list, or --map.")
    site = console.site(site_id)
    if old and new:
        plan, what = move_plan.of_list(site, [(old, new)]), f"{old} to {new}"
    elif file is not None:
        pairs = move_plan.read_list(_text(file))
        plan, what = move_plan.of_list(site, pairs), f"a list of {quantity(len(pairs), 'page')}"
    else:
        plan = move_plan.of_mapping(site, page_mapping.PageMapping(mapping, site.origins))
        what = ", ".join(mapping)
    _report(plan)
    if dry_run or not plan.moves:
        click.echo("Nothing was stored.")
        return
    actor = moderation_commands.ACTOR
    move = thread_moves.begin(site, plan, what, actor, now=console.now())
    move = thread_moves.run_to_end(move)
    click.echo(f"Moved {quantity(move.moved, 'thread')}.")
    click.echo(f"To undo this within 30 days: flatthread thread unmove {site.id} {move.id}")


def _text(file: TextIO) -> str:
    try:
        return file.read()
    except UnicodeDecodeError as error:
        raise click.ClickException("The list is not valid UTF-8.") from error


def _report(plan: "move_plan.Plan") -> None:
    for move in plan.moves:
        click.echo(f"move\t{move.old}\t{move.new}")
    for collision in plan.collisions:
        click.echo(f"taken\t{collision.old}\t{collision.new}\tby {collision.owner}")
    for missing in plan.missing:
        click.echo(f"none\t{missing}")
    left = "" if plan.left is None else f", and {plan.left} not matched"
    click.echo(
        f"{quantity(len(plan.moves), 'thread')} to move, {len(plan.collisions)} whose new address "
        f"is taken, {len(plan.missing)} not found, {plan.same} already there{left}."
    )


@console.command("merge", console.SITE)
@click.argument("source")
@click.argument("target")
@_confirmed
def _merge_threads(site_id: str, source: str, target: str, *, confirmed: bool) -> None:
    """Merge the thread SOURCE into the thread TARGET.

    All comments are then one tree at TARGET, in the order of their times, and the addresses of
    SOURCE lead to TARGET. Followers of SOURCE follow TARGET. TARGET keeps its title, its lock and
    its policy. Without --yes, only say what would change.
    """
    site = console.site(site_id)
    _join(site, join_plan.of_merge(site, source, target), confirmed=confirmed)


@console.command("split", console.SITE)
@click.argument("comment")
@click.argument("target")
@_confirmed
def _split_thread(site_id: str, comment: str, target: str, *, confirmed: bool) -> None:
    """Move a comment, given its id, and all comments below it to the page TARGET.

    If TARGET has a thread, the comments join it; otherwise they begin its thread. Followers stay
    with the previous thread. Without --yes, only say what would change.
    """
    site = console.site(site_id)
    _join(site, join_plan.of_split(site, comment, target), confirmed=confirmed)


def _join(site: records.Site, plan: "join_plan.JoinPlan", *, confirmed: bool) -> None:
    new = ", a new thread" if plan.is_new else ""
    click.echo(
        f"{plan.old} -> {plan.new}{new}\n"
        f"{quantity(plan.comments, 'comment')} to move, {plan.kept} that stay, {plan.renamed} with "
        f"a new number, {quantity(plan.followers, 'follower')} to move, {plan.unpinned} to unpin, "
        f"{plan.doubled} to hide because {plan.new} has them too."
    )
    for name, value in plan.settings:
        click.echo(f"lost\t{name}: {value}")
    if not confirmed:
        click.echo("Nothing was stored. Add --yes to store it.")
        return
    move = thread_joins.begin(site, plan, moderation_commands.ACTOR, now=console.now())
    thread_moves.run_to_end(move)
    click.echo(f"Moved {quantity(plan.comments, 'comment')}.")
    click.echo(f"To undo this within 30 days: flatthread thread unmove {site.id} {move.id}")


@console.command("moves", console.SITE, _json)
def _list_moves(site_id: str, *, is_json: bool) -> None:
    """List the moves, merges and splits of a site's threads of the last 30 days, newest first."""
    moves = [
        _ListedMove(
            move.id, move.began, move.state, move.actor.name,
            move.what, move.threads, move.moved, move.restored,
        )
        for move in move_journal.of_site(console.site(site_id).id)
    ]  # fmt: skip
    form = tables.TableFormat.JSON if is_json else tables.TableFormat.TABLE
    click.echo(tables.format_table(_ListedMove, moves, form))


@console.command("unmove", console.SITE)
@click.argument("move_id", metavar="MOVE")
def _undo_move(site_id: str, move_id: str) -> None:
    """Undo a move, a merge or a split within 30 days. Threads that have moved again stay.

    The new addresses lead nowhere afterwards, except those that threads had before.
    """
    actor, now = moderation_commands.ACTOR, console.now()
    move = thread_moves.undo(console.site(site_id).id, move_id, actor, now=now)
    move = thread_moves.run_to_end(move)
    if move.join is not None:
        click.echo(f"Moved {quantity(move.join.comments, 'comment')} back.")
        return
    click.echo(f"Moved {move.restored} of {quantity(move.moved, 'thread')} back.")


COMMANDS = (_move_threads, _merge_threads, _split_thread, _list_moves, _undo_move)
