"""Propose moves of threads to the addresses that their pages declare, or at which they answer.

A page that has moved often keeps its old address for a while and declares the new one
(`<link rel="canonical">`). If no thread has the declared address, the widget shows the thread of
the page's own address, and tells the service the declared one. Anybody can send any address, so a
declaration changes nothing: it becomes a proposal for the site's owners, and only if both addresses
are the site's, the thread exists and no thread has the new address. `site_setup` limits how many
proposals a site stores and how often.

A page may also answer at an address that its thread left long ago, for example because the page
moved back. The widget shows the thread there, and the service proposes to move it there. A process
checks this once a day for each address, so page views stay as cheap as they are.
"""

from datetime import datetime

from comments import errors
from comments.domain import records
from comments.domain.ids import thread_ids
from comments.sites import site_setup
from comments.threads import thread_aliases, thread_info
from comments.transfer.moves import move_journal, move_plan


def note(site: records.Site, thread: str, canonical: str, *, now: datetime) -> None:
    """Record that the page of a stored thread declared a canonical address.

    Raises:
        errors.BadInput: `canonical` is not the address of a page.
    """
    try:
        new = thread_ids.page_id(canonical, site)
    except errors.BadInput as error:
        raise error.about("canonical") from error
    address = thread_info.address(canonical, site)
    if address and new != thread:
        page = site_setup.DeclaredAddress(thread, thread_ids.page_url(address, new, site), now)
        site_setup.note_declared(site.id, page, lambda: bool(_plan(site, [page]).moves))


def note_answer(site: records.Site, thread: str, asked: str, *, now: datetime) -> None:
    """Record that a page asked for a stored thread by an id that the thread has left."""
    if site_setup.is_first_answer(site, asked):
        shown = thread_info.get(records.ThreadName(site.id, thread))
        address = thread_info.page_address("", asked, site)
        if address and shown is not None and shown.shown_id != asked:
            page = site_setup.DeclaredAddress(thread, address, now)
            site_setup.note_declared(site.id, page, lambda: True)


def proposals(site: records.Site, now: datetime) -> tuple[move_plan.PlannedMove, ...]:
    """Return the possible moves to addresses that pages declared or at which they answered lately.

    The newest comes first. `is_answer` tells the two kinds apart. A thread that has since been
    merged into another one has no proposal, and no thread is proposed to move to an address that it
    has left by a move that can be undone.
    """
    pages = site_setup.get(site.id).declared_since(now)
    stored = thread_aliases.stored_ids(site, [page.old for page in pages])
    kept = [page for page, thread in zip(pages, stored, strict=True) if page.old == thread]
    moves = _plan(site, kept).moves
    left = move_journal.left_ids(site.id) if any(is_answer(site, move) for move in moves) else set()
    return tuple(move for move in moves if move.new not in left)


def is_answer(site: records.Site, move: move_plan.PlannedMove) -> bool:
    """Return whether the new address of a proposal leads to the thread already."""
    return thread_aliases.stored_id(site, move.new) == move.stored


def _plan(site: records.Site, pages: list[site_setup.DeclaredAddress]) -> move_plan.Plan:
    return move_plan.of_list(site, [(page.old, page.new) for page in pages])
