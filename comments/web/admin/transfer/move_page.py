"""Moves of threads to new addresses, merges and splits: a preview, the move itself, and its undo.

The page does the same as the commands `thread move|merge|split|moves|unmove`. A form is answered
with a preview. The preview contains the number of threads or comments to move; if this number
changes before the owner confirms it, the owner gets a new preview.
"""

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import flask

from comments import errors
from comments.domain import records
from comments.moderation import review_queue
from comments.store.models import comment_rows
from comments.transfer.checking import page_mapping
from comments.transfer.moves import (
    declared_moves,
    doubled_threads,
    join_plan,
    move_journal,
    move_plan,
    thread_joins,
    thread_moves,
)
from comments.upkeep import worker_threads
from comments.web.admin import site_visit
from comments.web.admin.form_types import site_forms
from comments.web.rendering import labels

blueprint = site_visit.owner_blueprint("moves")

MOST_THREADS = 5_000  # Maximum number of a site's threads to which a request applies a mapping
MOST_COMMENTS = 5_000  # Maximum number of comments in threads that a request merges or splits
_SHOWN = 100  # Maximum number of lines of each kind in a preview
_STEPS = 20  # Transactions in the request itself; the background worker runs the rest.


@blueprint.page("/moves", site_forms.MovesQuery)
def show(visit: site_visit.Visit, query: site_forms.MovesQuery) -> flask.Response:
    """Show the forms, and list the moves of the last 30 days."""
    return _page(visit, old=query.old, comment=query.comment)


@blueprint.form("/moves", site_forms.MoveForm)
def move(visit: site_visit.Visit, sent: site_forms.MoveForm) -> flask.Response:
    """Preview a move, or begin the move that the owner has seen in a preview."""
    if sent.way in {"merge", "split"}:
        return _join(visit, sent)
    plan, what = _plan(visit.site, sent)
    if sent.way == "page" and plan.missing:
        raise errors.MoveRefused(f"There is no thread {plan.missing[0]}.", "old")
    if not plan.moves or sent.planned != str(len(plan.moves)):
        return _page(visit, sent=sent, plan=plan)
    thread_moves.begin(visit.site, plan, what, visit.account.actor, now=visit.now)
    _run(thread_moves.finish)
    return site_visit.redirect_with_notice(visit, "moves", "moved")


@blueprint.form("/moves/doubles", site_forms.DoublesForm)
def handle_doubles(visit: site_visit.Visit, sent: site_forms.DoublesForm) -> flask.Response:
    """Look for doubled pages, or preview and begin the merges of all that were found."""
    count = _doubles(visit.site).likely
    if sent.act == "look":
        doubled_threads.begin(visit.site.id, now=visit.now)
    elif count and sent.planned == str(count):
        doubled_threads.merge_all(visit.site.id, visit.account.actor)
    else:
        return _page(visit, merger=sent)
    _run(doubled_threads.finish)
    search = doubled_threads.get(visit.site.id)
    is_merged = sent.act == "merge" and search is not None and search.merger is None
    notice = "merged" if is_merged else "doubles"
    return site_visit.redirect_with_notice(visit, "moves", notice)


@blueprint.form("/moves/undo", site_forms.MoveUndoForm)
def undo(visit: site_visit.Visit, sent: site_forms.MoveUndoForm) -> flask.Response:
    """Begin to undo a move; the background worker continues a long one."""
    thread_moves.undo(visit.site.id, sent.id, visit.account.actor, now=visit.now)
    _run(thread_moves.finish)
    move = move_journal.get(visit.site.id, sent.id)
    notice = "undoing" if move is not None and move.is_unfinished else "undone"
    return site_visit.redirect_with_notice(visit, "moves", f"move-{notice}")


def _join(visit: site_visit.Visit, sent: site_forms.MoveForm) -> flask.Response:
    """Preview a merge or a split, or begin the one that the owner has seen in a preview."""
    if sent.way == "merge":
        source, target = _read_fields(source=sent.source, target=sent.target)
        plan = join_plan.of_merge(visit.site, source, target, most=MOST_COMMENTS)
    else:
        comment, target = _read_fields(comment=sent.comment, target=sent.target)
        plan = join_plan.of_split(visit.site, comment, target, most=MOST_COMMENTS)
    if sent.planned != str(plan.comments):
        return _page(visit, sent=sent, join=plan)
    try:
        thread_joins.begin(visit.site, plan, visit.account.actor, now=datetime.now(UTC))
    except errors.ThreadMoved as error:
        raise errors.MoveRefused(str(error), "target") from error
    _run(thread_moves.finish)
    return site_visit.redirect_with_notice(visit, "moves", "moved")


def _run(finish: Callable[[int], int]) -> None:
    """Run the first steps of a job, and leave the rest to the background worker."""
    if finish(_STEPS) == _STEPS:
        worker_threads.nudge_jobs()


def _read_fields(**values: str) -> list[str]:
    """Return the values of fields without spaces around them, in their order."""
    for field, text in values.items():
        if not text.strip():
            raise errors.BadInput(field, "required")
    return [text.strip() for text in values.values()]


def _plan(site: records.Site, sent: site_forms.MoveForm) -> tuple[move_plan.Plan, str]:
    """Return what the form would do, and its description for the journal."""
    if sent.way == "list":
        pairs = move_plan.read_list(sent.pages)
        return move_plan.of_list(site, pairs), labels.text("admin.moves-list-of", count=len(pairs))
    old, new = _read_fields(old=sent.old, new=sent.new)
    if sent.way == "page":
        return move_plan.of_list(site, [(old, new)]), f"{old} to {new}"
    try:
        mapping = page_mapping.PageMapping([f"{old}={new}"], site.origins)
    except errors.ImportRefused as error:
        raise errors.MoveRefused(str(error), "old") from error
    return move_plan.of_mapping(site, mapping, most=MOST_THREADS), f"{old}={new}"


def _page(  # noqa: PLR0913 - independent parts of the page, passed by keyword
    visit: site_visit.Visit,
    *,
    old: str = "",
    comment: str = "",
    sent: site_forms.MoveForm | None = None,
    plan: move_plan.Plan | None = None,
    join: join_plan.JoinPlan | None = None,
    merger: site_forms.DoublesForm | None = None,
) -> flask.Response:
    site = visit.site
    moves = [move for move in move_journal.of_site(site.id) if move.state != "planned"]
    splits = [move.join.comment for move in moves if move.join and move.join.comment]
    proposals = declared_moves.proposals(site, datetime.now(UTC))
    answers = [move for move in proposals if declared_moves.is_answer(site, move)]
    return site_visit.page(
        "moves.html",
        visit,
        old=old,
        comment=comment,
        sent=sent,
        plan=plan,
        join=join,
        find=functools.partial(_find, site),
        most=_SHOWN,
        proposals=[move for move in proposals if move not in answers],
        answers=answers,
        merger=merger,
        doubles=_doubles(site),
        moves=moves,
        splits=review_queue.cases(splits),
        days=move_journal.TERM.days,
    )


class _Doubles(NamedTuple):
    """The last search, the first pairs that it found, and the number of pages to merge at once."""

    search: doubled_threads.Search | None
    pairs: list[doubled_threads.DoubledThreads]
    likely: int


def _doubles(site: records.Site) -> _Doubles:
    search = doubled_threads.get(site.id)
    pairs = doubled_threads.pairs(site, search, _SHOWN) if search else []
    likely = sum(pair.is_likely for pair in pairs)
    if search and likely and len(pairs) == _SHOWN:
        likely = len(search.found)
    return _Doubles(search, pairs, likely)


def _find(site: records.Site, comment: str) -> records.Comment | None:
    """Return the comment that a split names, if it is a comment of the site."""
    case = (
        review_queue.cases([comment]).get(comment) if comment_rows.is_comment_id(comment) else None
    )
    return case.comment if case is not None and case.comment.site == site.id else None


blueprint.show_again(show)
