"""The calls of `/api/v1` for declared counters, with a moderator's token.

The owner of a site declares counters on the command line; these calls only read them. A counter by
author shows authors' ids, so only callers who may moderate the site get its numbers.
"""

import functools
from typing import Any

import flask

from comments.tree.counters import declarations, declared_reports
from comments.web.api import moderator_callers, statistics_calls
from comments.web.http import cors, request_shapes, responses, statistics_shapes
from comments.web.http.decode import query_strings

blueprint = moderator_callers.blueprint("moderator_counters")

_STATISTICS = "/sites/<site:site_id>/moderation/statistics"


@blueprint.get(f"{_STATISTICS}/counters")
@cors.personal
def list_counters(site_id: str) -> flask.Response:
    """List a site's declared counters."""
    moderator_callers.current()
    query_strings.read(request_shapes.NoQuery)
    shown = [
        statistics_shapes.CounterSummary(
            each.declaration.name, f"{each.declaration}", each.is_complete
        )
        for each in declarations.of_site(site_id).counters
    ]
    return responses.private(responses.fresh(statistics_shapes.CounterList(shown)))


@blueprint.get(f"{_STATISTICS}/counter-numbers")
@cors.personal
def list_counter_numbers(site_id: str) -> flask.Response:
    """List the numbers of a declared counter."""
    moderator_callers.current()
    query = query_strings.read(statistics_shapes.CounterReportQuery)
    counter = declarations.counter(site_id, query.counter)
    wanted = declared_reports.CountFilter(
        query.under or "", query.since or None, query.until or None
    ).check(counter.declaration)

    def report(lines: list[Any], cursor: str | None) -> statistics_shapes.CounterReport:
        return statistics_shapes.CounterReport(lines, cursor, counter.is_complete)

    form = statistics_calls.ReportForm(report, declared_reports.CountLine)
    read = functools.partial(declared_reports.lines, site_id, counter, wanted)
    # A changed counter has other numbers, to which a cursor of the old ones does not apply.
    listing = (site_id, "counter", f"{counter.generation}", wanted.under)
    return statistics_calls.answer(query, read, form, listing)
