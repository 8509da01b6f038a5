"""The page of a comment: its ancestors, the reason for its status, and the decisions about it."""

import flask

from comments.events import audit_log
from comments.moderation import decisions, review_queue
from comments.web.admin import comment_list, decision_forms, site_visit
from comments.web.admin.form_types import form_fields
from comments.web.http.decode import query_strings
from comments.web.rendering import labels

blueprint = site_visit.blueprint("cases")

_ABOVE = 20  # The maximum number of ancestors that the page shows.
_OTHERS = 5


@blueprint.route("/comments/<comment:comment_id>", methods=["GET", "POST"])
def show(site_id: str, comment_id: str) -> flask.Response:
    """Show the comment, and the outcome if a decision was posted."""
    visit = site_visit.enter(site_id)
    query_strings.read(form_fields.EmptyQuery)
    report = decision_forms.apply_posted(visit, comment_id)
    if isinstance(report, flask.Response):
        return report
    case = decisions.case(visit.site.id, comment_id)
    comment, secret = case.comment, site_visit.settings().secret
    others: tuple[comment_list.CommentListItem, ...] = ()
    if comment.author.id:
        wanted = review_queue.QueueFilter(visit.site.id, review_queue.STATUSES, comment.author.id)
        page = review_queue.page(wanted, limit=_OTHERS + 1, secret=secret)
        cases = [case for case in page.cases if case.comment.id != comment_id][:_OTHERS]
        others = tuple(comment_list.of(visit.site, cases))
    return site_visit.page(
        "comment.html",
        visit,
        row=comment_list.of(visit.site, [case])[0],
        above=review_queue.ancestors(comment, _ABOVE),
        others=others,
        entries=audit_log.log(visit.site.id, subject=comment_id),
        change=labels.change,
        report=report,
        bulk=decision_forms.BULK,
    )
