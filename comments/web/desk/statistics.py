"""The numbers of a site: by day and by category, with a plot of each, and what it used today."""

from datetime import UTC, date, datetime, timedelta

import flask

from comments import stats
from comments.web import queries
from comments.web.desk import asked, limits, plots, visits

blueprint = visits.blueprint("statistics")

_MOST_CATEGORIES = 200


@blueprint.get("/statistics")
def show(site_id: str) -> flask.Response:
    """Comments and distinct commenters, of the last days and of each category."""
    visit = visits.enter(site_id)
    query = queries.read(asked.Statistics)
    until = datetime.now(UTC).date()
    since = until - timedelta(days=int(query.days) - 1)
    found = stats.by_day(visit.site.id, query.category, since=since, until=until)
    by_category = stats.by_category(visit.site.id, limit=_MOST_CATEGORIES)
    every = _filled({line.day: line for line in found.lines if line.day}, since, until)
    return visits.page(
        "statistics.html",
        visit,
        query=query,
        all=stats.site(visit.site.id),
        today=limits.today(visit.site, datetime.now(UTC)),
        days=found.lines[::-1],
        categories=by_category.lines,
        is_cut=by_category.after is not None,
        plot=plots.bars([(day, line.comments if line else 0) for day, line in every]),
        plot_of_people=plots.bars([(day, line.commenters if line else 0) for day, line in every]),
        plot_of_categories=plots.bars(
            [(each.category, each.comments) for each in by_category.lines]
        ),
        plot_of_people_there=plots.bars(
            [(each.category, each.commenters) for each in by_category.lines]
        ),
        since=since,
        until=until,
        size=(plots.WIDTH, plots.HEIGHT),
    )


def _filled(
    lines: dict[date, stats.Line], since: date, until: date
) -> list[tuple[str, stats.Line | None]]:
    """Every day of a while, also those on which nobody wrote."""
    days = [since + timedelta(days=number) for number in range((until - since).days + 1)]
    return [(day.isoformat(), lines.get(day)) for day in days]
