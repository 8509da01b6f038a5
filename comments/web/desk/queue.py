"""The queue: a site's comments that wait, or of any status, by author or by words in them."""

import flask

from comments import counts, docket, reports
from comments.web import callers, queries
from comments.web.desk import asked, decisions, rows, visits

blueprint = visits.blueprint("queue")


@blueprint.get("")
@blueprint.get("/")
def find(site_id: str) -> flask.Response:
    """The desk of a site, where it is looked for: its queue."""
    return callers.go(f"admin/sites/{visits.enter(site_id).site.id}/queue")


@blueprint.route("/queue", methods=["GET", "POST"])
def show(site_id: str) -> flask.Response:
    """The comments, and what became of those that the form decided."""
    visit = visits.enter(site_id)
    query = queries.read(asked.Queue)
    report = decisions.taken(visit)
    if isinstance(report, flask.Response):
        return report
    secret = visits.settings().secret
    found = docket.page(query.wanted(visit.site), cursor=query.start, secret=secret)
    return visits.page(
        "queue.html",
        visit,
        query=query,
        rows=rows.of(visit.site, found.cases),
        found=found,
        statuses=docket.STATUSES,
        numbers=counts.of_site(visit.site.id),
        report=report,
        words=decisions.WORDS,
        bulk=decisions.BULK,
    )


@blueprint.route("/reported", methods=["GET", "POST"])
def reported(site_id: str) -> flask.Response:
    """The comments with open reports, those with most of them first."""
    visit = visits.enter(site_id)
    queries.read(asked.Nothing)
    report = decisions.taken(visit)
    if isinstance(report, flask.Response):
        return report
    told = reports.most(visit.site.id, docket.PAGE)
    cases = docket.cases([each.comment for each in told])
    shown = [cases[each.comment] for each in told if each.comment in cases]
    return visits.page(
        "reported.html",
        visit,
        rows=rows.of(visit.site, shown),
        report=report,
        words=decisions.WORDS,
        bulk=decisions.BULK,
    )
