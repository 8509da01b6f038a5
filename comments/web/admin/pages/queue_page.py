"""The review queue of a site, filtered by status, author and text, and the reported comments."""

import flask

from comments.moderation import reports, review_queue
from comments.tree.counters import totals
from comments.web.admin import admin_queries, comment_list, decision_forms, site_visit
from comments.web.http.decode import query_strings
from comments.web.sign_in import signed_in

blueprint = site_visit.blueprint("queue")


@blueprint.get("")
@blueprint.get("/")
def find(site_id: str) -> flask.Response:
    """Redirect a site's admin address to its review queue."""
    return signed_in.redirect_to(f"admin/sites/{site_visit.enter(site_id).site.id}/queue")


@blueprint.route("/queue", methods=["GET", "POST"])
def show(site_id: str) -> flask.Response:
    """Show the comments, and the outcomes if decisions were posted."""
    visit = site_visit.enter(site_id)
    query = query_strings.read(admin_queries.QueueQuery)
    report = decision_forms.apply_posted(visit)
    if isinstance(report, flask.Response):
        return report
    secret = site_visit.settings().secret
    page = review_queue.page(query.queue_filter(visit.site), cursor=query.start, secret=secret)
    return site_visit.page(
        "queue.html",
        visit,
        query=query,
        rows=comment_list.of(visit.site, page.cases),
        found=page,
        statuses=review_queue.STATUSES,
        numbers=totals.of_site(visit.site.id),
        report=report,
        bulk=decision_forms.BULK,
    )


@blueprint.route("/reported", methods=["GET", "POST"])
def show_reported(site_id: str) -> flask.Response:
    """Show the comments with open reports, most reported first."""
    visit = site_visit.enter(site_id)
    query_strings.read(admin_queries.EmptyQuery)
    report = decision_forms.apply_posted(visit)
    if isinstance(report, flask.Response):
        return report
    summaries = reports.most(visit.site.id, review_queue.PAGE)
    cases = review_queue.cases([entry.comment for entry in summaries])
    shown = [cases[entry.comment] for entry in summaries if entry.comment in cases]
    return site_visit.page(
        "reported.html",
        visit,
        rows=comment_list.of(visit.site, shown),
        report=report,
        bulk=decision_forms.BULK,
    )
