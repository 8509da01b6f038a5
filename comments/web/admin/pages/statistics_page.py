"""The statistics of a site by day and by category, with plots, and the site's usage today."""

from datetime import UTC, date, datetime, timedelta

import flask

from comments.tree.counters import statistics
from comments.web.admin import admin_queries, plots, site_visit
from comments.web.admin.pages import limit_page
from comments.web.http.decode import query_strings
from comments.web.rendering import labels

blueprint = site_visit.blueprint("statistics")

_MOST_CATEGORIES = 200


@blueprint.get("/statistics")
def show(site_id: str) -> flask.Response:
    """Show comment counts and distinct commenters for a period of days and for each category."""
    visit = site_visit.enter(site_id)
    query = query_strings.read(admin_queries.StatisticsQuery)
    today = datetime.now(UTC).date()
    until = query.until if isinstance(query.until, date) else today
    since = date.fromordinal(max(until.toordinal() - int(query.days) + 1, 1))
    by_day = statistics.by_day(visit.site.id, query.category, since=since, until=until)
    by_category = statistics.by_category(visit.site.id, limit=_MOST_CATEGORIES)
    every = _all_days({line.day: line for line in by_day.lines if line.day}, since, until)
    return site_visit.page(
        "statistics.html",
        visit,
        query=query,
        all=statistics.site(visit.site.id),
        today=limit_page.today(visit.site, datetime.now(UTC)),
        days=by_day.lines[::-1],
        last=None if by_day.lines else _last_day(visit.site.id, query.category, since),
        categories=by_category.lines,
        is_nested=any("/" in line.category for line in by_category.lines),
        is_cut=by_category.after is not None,
        plot=plots.bars([(day, line.comments if line else 0) for day, line in every]),
        plot_of_people=plots.bars([(day, line.commenters if line else 0) for day, line in every]),
        plot_of_categories=plots.bars(
            [(line.category, line.comments) for line in by_category.lines]
        ),
        plot_of_people_there=plots.bars(
            [(line.category, line.commenters) for line in by_category.lines]
        ),
        since=since,
        until=until,
        size=(plots.WIDTH, plots.HEIGHT),
    )


def _last_day(site_id: str, category: str, since: date) -> date | None:
    """Return the last day with comments before a period or, if there is none, the last of all."""
    before = date.fromordinal(max(since.toordinal() - 1, 1))
    return statistics.last_day(site_id, category, until=before) or statistics.last_day(
        site_id, category, until=date.max
    )


def _all_days(
    lines: dict[date, statistics.StatisticsEntry], since: date, until: date
) -> list[tuple[str, statistics.StatisticsEntry | None]]:
    """Return all days of a period with their names, including days without comments."""
    days = [since + timedelta(days=number) for number in range((until - since).days + 1)]
    return [(labels.day(day), lines.get(day)) for day in days]
