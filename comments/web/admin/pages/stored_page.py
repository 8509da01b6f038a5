"""A thread as it is stored: the flat tree with hashes, numbers and buckets, for the site's owners.

The page does what the commands `thread show`, `repair` and `thread rebuild` do for one thread. A
check reads the whole thread within one request, so the page checks only threads with at most
`MOST_COMMENTS` comments; the audit and the command check larger ones.
"""

import functools

import flask

from comments import errors
from comments.domain import records
from comments.domain.moderation import roles
from comments.domain.text import shown_values
from comments.reading import tree_table
from comments.tree.counters import totals
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler
from comments.upkeep.integrity import thread_repair
from comments.web.admin import site_visit
from comments.web.admin.form_types import site_forms
from comments.web.http.decode import query_strings
from comments.web.rendering import labels

blueprint = site_visit.owner_blueprint("stored")

MOST_COMMENTS = 2_000
_PAGE = 100  # Comments per page
_MOST_SHOWN = 100  # Maximum number of differences that the page lists


@blueprint.get("/thread/stored")
def show(site_id: str) -> flask.Response:
    """Show the comments of a thread with their stored places."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    return _page(visit, _thread_name(visit))


@blueprint.form("/thread/stored", site_forms.StoredThreadForm)
def act(visit: site_visit.Visit, sent: site_forms.StoredThreadForm) -> flask.Response:
    """Check or repair a thread, or rebuild its pages."""
    name = _thread_name(visit)
    _require_size(name)
    if sent.act == "rebuild":
        scheduler.rebuild_whole([name], wait=None)
        return _page(visit, name, said=labels.text("admin.stored-rebuilt"))
    faults = thread_repair.find_faults(name)
    if not faults:
        return _page(visit, name, said=labels.text("admin.stored-whole"))
    if sent.act == "check":
        return _page(visit, name, faults, labels.text("admin.stored-faults", count=len(faults)))
    compact = functools.partial(scheduler.compact_whole, wait=None)
    thread_repair.mend(name, compact, now=visit.now)
    left = [fault for fault in faults if not fault.mendable]
    done = labels.text("admin.stored-repaired", count=len(faults) - len(left))
    rest = labels.text("admin.stored-left", count=len(left)) if left else ""
    return _page(visit, name, faults, f"{done} {rest}".strip())


def _thread_name(visit: site_visit.Visit) -> records.ThreadName:
    thread, _ = query_strings.read_thread(site_forms.StoredThreadQuery, visit.site)
    return records.ThreadName(visit.site.id, thread)


def _require_size(name: records.ThreadName) -> None:
    """Refuse a thread that is too large to check within a request.

    Raises:
        errors.NotFound: there is no such thread.
        errors.Conflict: the thread has more than `MOST_COMMENTS` comments.
    """
    tree_table.of(ordered_query.scheme_of(name), name, most=1)
    if _size(name) > MOST_COMMENTS:
        raise errors.Conflict("check-too-large", limit=MOST_COMMENTS)


def _size(name: records.ThreadName) -> int:
    (numbers,) = totals.of_threads([name])
    return sum(numbers.get(status.value, 0) for status in records.Status)


def _page(
    visit: site_visit.Visit,
    name: records.ThreadName,
    faults: list[thread_repair.StoredFault] | None = None,
    said: str = "",
) -> flask.Response:
    # Forms are sent to the first page of the table.
    after = flask.request.args.get("cursor", "")
    table = tree_table.of(ordered_query.scheme_of(name), name, after=after, most=_PAGE)
    return site_visit.page(
        "stored.html",
        visit,
        about=table.thread,
        lines=table.lines,
        slugs={line.id: line.slug for line in table.lines},
        buckets={key: number for number, key in enumerate(table.buckets, 1)},
        after=table.after,
        is_large=_size(name) > MOST_COMMENTS,
        most=MOST_COMMENTS,
        faults=(faults or [])[:_MOST_SHOWN],
        show_value=shown_values.show,
        said=said,
    )
