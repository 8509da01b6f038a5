"""The calls of `/api/v1` for statistics about who writes where; they require a moderator's token.

Responses are JSON or CSV. The responses contain authors' ids, so only callers who may moderate the
site get them. Each call reads one page of counter rows (`statistics`); only audiences need a scan,
whose size is limited (`audience_scan`). The cursor points to the next page. The header `Link`
contains the cursor as well, because CSV has no other place for it.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes

import flask
import msgspec

from comments import errors
from comments.domain import categories, records
from comments.domain.counters import audiences
from comments.domain.crypto import cursors
from comments.domain.text import tables
from comments.notifications import reader_follows
from comments.sites import site_settings
from comments.threads import thread_aliases
from comments.tree.counters import audience_scan, periods, statistics
from comments.tree.counters.declared import declarations, declared_reports
from comments.web.api.callers import moderator_callers
from comments.web.api.site_statistics import statistics_shapes
from comments.web.http import context, responses
from comments.web.http.decode import parameters, query_strings

blueprint = moderator_callers.blueprint("moderator_statistics")

_STATISTICS = "/sites/<site:site_id>/moderation/statistics"
_MOST_SCANNED = 50_000  # Maximum number of rows; scanning them takes about half a second
_JSON, _CSV = "application/json", "text/csv"
_SAFE = "!$%&'()*+,-./:;=?@_~"  # Characters of a query that need no escaping in a `Link`.


class ReportForm(NamedTuple):
    """The form of a report: the type of its lines, and the function that builds the JSON response.

    The function takes the lines, and the cursor of the next page.
    """

    answer: Callable[[list[Any], str | None], msgspec.Struct]
    line: type[msgspec.Struct]


@blueprint.get(f"{_STATISTICS}/categories")
def list_categories(site_id: str) -> flask.Response:
    """List the numbers of each category, or of one category and its subcategories."""
    query = query_strings.read(statistics_shapes.CategoriesReportQuery)
    under = _category("under", query.under) if query.under else ""
    form = ReportForm(statistics_shapes.CategoryReport, statistics_shapes.CategoryNumbers)
    read = functools.partial(statistics.by_category, site_id, under=under)
    return answer(query, read, form, (site_id, "categories", under))


@blueprint.get(f"{_STATISTICS}/days")
def list_days(site_id: str) -> flask.Response:
    """List the numbers of each day that has comments."""
    query = query_strings.read(statistics_shapes.DayReportQuery)
    form = ReportForm(statistics_shapes.DayReport, statistics_shapes.DayNumbers)
    read = functools.partial(
        statistics.by_day, site_id, since=query.since or None, until=query.until or None
    )
    return answer(query, read, form, (site_id, "days"))


@blueprint.get(f"{_STATISTICS}/category-commenters")
def list_category_commenters(site_id: str) -> flask.Response:
    """List the authors in a category and its subcategories."""
    query = query_strings.read(statistics_shapes.CategoryReportQuery)
    category = _category("category", query.category)
    form = ReportForm(statistics_shapes.CommenterReport, statistics.AuthorCount)
    read = functools.partial(statistics.commenters_of_category, site_id, category)
    return answer(query, read, form, (site_id, "category", category))


@blueprint.get(f"{_STATISTICS}/thread-commenters")
def list_thread_commenters(site_id: str) -> flask.Response:
    """List the authors in a thread."""
    site = site_settings.get(site_id)
    thread, query = query_strings.read_thread(statistics_shapes.ReportQuery, site)
    form = ReportForm(statistics_shapes.CommenterReport, statistics.AuthorCount)
    read = functools.partial(statistics.commenters, records.ThreadName(site_id, thread))
    return answer(query, read, form, (site_id, "thread", thread))


@blueprint.get(f"{_STATISTICS}/thread-followers")
def list_thread_followers(site_id: str) -> flask.Response:
    """List the readers who follow a thread without mail and agreed to be listed."""
    site = site_settings.get(site_id)
    thread, query = query_strings.read_thread(statistics_shapes.ReportQuery, site)
    form = ReportForm(statistics_shapes.FollowerReport, reader_follows.ListedFollower)
    read = functools.partial(reader_follows.listed_followers, records.ThreadName(site_id, thread))
    return answer(query, read, form, (site_id, "thread-followers", thread))


@blueprint.get(f"{_STATISTICS}/author-categories")
def list_author_categories(site_id: str) -> flask.Response:
    """List the categories in which an author has commented."""
    query = query_strings.read(statistics_shapes.AuthorReportQuery)
    form = ReportForm(statistics_shapes.AuthorCategoryReport, statistics.CategoryCount)
    read = functools.partial(statistics.categories_of, site_id, query.author)
    return answer(query, read, form, (site_id, "author-categories", query.author))


@blueprint.get(f"{_STATISTICS}/author-threads")
def list_author_threads(site_id: str) -> flask.Response:
    """List the threads in which an author has commented."""
    query = query_strings.read(statistics_shapes.AuthorReportQuery)
    form = ReportForm(statistics_shapes.AuthorThreadReport, statistics.ThreadCount)
    read = functools.partial(statistics.threads_of, site_id, query.author)
    return answer(query, read, form, (site_id, "author-threads", query.author))


@blueprint.get(f"{_STATISTICS}/pages")
def list_busiest_pages(site_id: str) -> flask.Response:
    """List the pages with the most comments in a period."""
    query = query_strings.read(statistics_shapes.BusiestReportQuery)
    busiest = periods.busiest(site_id, query.period, limit=query.limit)
    answer = statistics_shapes.BusiestPages(busiest.pages, busiest.page_count)
    return _negotiated_answer(query.format, periods.BusyPage, busiest.pages, answer)


@blueprint.get(f"{_STATISTICS}/people")
def list_busiest_people(site_id: str) -> flask.Response:
    """List the people with the most comments in a period."""
    query = query_strings.read(statistics_shapes.BusiestReportQuery)
    busiest = periods.busiest(site_id, query.period, limit=query.limit)
    answer = statistics_shapes.BusiestPeople(busiest.people, busiest.person_count)
    return _negotiated_answer(query.format, periods.BusyPerson, busiest.people, answer)


@blueprint.get(f"{_STATISTICS}/hours")
def list_hours(site_id: str) -> flask.Response:
    """List the hours of the day with their comments in a period."""
    query = query_strings.read(statistics_shapes.PeriodReportQuery)
    lines = periods.busiest(site_id, query.period, limit=0).hours
    return _negotiated_answer(
        query.format, periods.BusyHour, lines, statistics_shapes.BusiestHours(lines)
    )


@blueprint.get(f"{_STATISTICS}/audiences")
def count_audiences(site_id: str) -> flask.Response:
    """Count the authors in each of several audiences, with one scan."""
    query = query_strings.read(statistics_shapes.AudiencesQuery)
    counts = audience_scan.count(site_id, _question(site_id, query.audiences), most=_MOST_SCANNED)
    line = audience_scan.AudienceCount
    return _negotiated_answer(query.format, line, counts, statistics_shapes.AudienceReport(counts))


@blueprint.get(f"{_STATISTICS}/audience-cost")
def price_audiences(site_id: str) -> flask.Response:
    """Return how many rows a scan for several audiences would read."""
    query = query_strings.read(statistics_shapes.AudienceQuery)
    cost = audience_scan.cost(site_id, _question(site_id, query.audiences))
    return responses.personal(cost)


@blueprint.get(f"{_STATISTICS}/audience-commenters")
def list_audience_commenters(site_id: str) -> flask.Response:
    """List the authors in an audience."""
    query = query_strings.read(statistics_shapes.MembersQuery)
    form = ReportForm(statistics_shapes.MemberReport, audience_scan.AudienceMember)
    read = functools.partial(
        audience_scan.members, site_id, _question(site_id, query.audiences), most=_MOST_SCANNED
    )
    return answer(query, read, form, (site_id, "audience", query.audiences))


@blueprint.get(f"{_STATISTICS}/counters")
def list_counters(site_id: str) -> flask.Response:
    """List a site's declared counters."""
    query_strings.read(parameters.NoQuery)
    shown = [
        statistics_shapes.CounterSummary(
            entry.declaration.name, f"{entry.declaration}", entry.is_complete
        )
        for entry in declarations.of_site(site_id).counters
    ]
    return responses.personal(statistics_shapes.CounterList(shown))


@blueprint.get(f"{_STATISTICS}/counter-numbers")
def list_counter_numbers(site_id: str) -> flask.Response:
    """List the numbers of a declared counter."""
    query = query_strings.read(statistics_shapes.CounterReportQuery)
    counter = declarations.counter(site_id, query.counter)
    wanted = declared_reports.CountFilter(
        query.under or "", query.since or None, query.until or None
    ).check(counter.declaration)

    def report(lines: list[Any], cursor: str | None) -> statistics_shapes.CounterReport:
        return statistics_shapes.CounterReport(lines, cursor, counter.is_complete)

    form = ReportForm(report, declared_reports.CountLine)
    read = functools.partial(declared_reports.lines, site_id, counter, wanted)
    # If a counter was changed, its numbers are different, and a cursor for the old numbers does not
    # apply to them.
    listing = (site_id, "counter", f"{counter.generation}", wanted.under)
    return answer(query, read, form, listing)


def _question(site_id: str, text: str) -> audiences.Question:
    asked = audiences.question(audiences.decode_named(text.encode()))
    site = site_settings.get(site_id)
    asked.translate_threads(functools.partial(thread_aliases.stored_id, site))
    return asked


def _category(field: str, name: str) -> str:
    try:
        return categories.canonical(name)
    except errors.BadInput as error:
        raise error.about(field) from error


def answer(
    query: statistics_shapes.ReportQuery,
    read: Callable[..., statistics.ReportPage[Any]],
    form: ReportForm,
    listing: Sequence[str],
) -> flask.Response:
    """Respond with the page of a report that `read` returns for `after` and `limit`.

    A cursor is valid only for the report that `listing` names.
    """
    label, secret = cursors.label("statistics", *listing), context.settings().secret
    after = cursors.unseal(query.cursor, label, secret)[0] if query.cursor else ""
    page = read(after=after, limit=query.limit)
    columns = form.line.__struct_fields__
    lines = [form.line(*(getattr(line, name) for name in columns)) for line in page.lines]
    cursor = None if page.after is None else cursors.seal([page.after], label, secret)
    response = _negotiated_answer(query.format, form.line, lines, form.answer(lines, cursor))
    if cursor is not None:
        response.headers["Link"] = f'<{_with_cursor(cursor)}>; rel="next"'
    return response


def _negotiated_answer(
    chosen: str | msgspec.UnsetType,
    line: type[msgspec.Struct],
    lines: Sequence[msgspec.Struct],
    answer: msgspec.Struct,
) -> flask.Response:
    """Respond with the lines as CSV or with `answer` as JSON, depending on the request."""
    response = _csv(line, lines) if _wants_csv(chosen) else responses.fresh(answer)
    response.vary.add("Accept")
    return responses.private(response)


def _csv(line: type[msgspec.Struct], lines: Sequence[msgspec.Struct]) -> flask.Response:
    text = tables.format_table(line, lines, tables.TableFormat.CSV)
    return flask.Response(f"{text}\n", content_type=f"{_CSV}; charset=utf-8")


def _wants_csv(chosen: str | msgspec.UnsetType) -> bool:
    if chosen:
        return chosen == "csv"
    return flask.request.accept_mimetypes.best_match([_JSON, _CSV]) == _CSV


def _with_cursor(cursor: str) -> str:
    """Return the address of the current request with this cursor instead of its own."""
    pieces = [piece for piece in flask.request.query_string.split(b"&") if piece]
    kept = [piece for piece in pieces if unquote_to_bytes(piece.partition(b"=")[0]) != b"cursor"]
    query = b"&".join([*kept, b"cursor=" + cursor.encode()])
    return f"{flask.request.path}?{quote(query, safe=_SAFE)}"
