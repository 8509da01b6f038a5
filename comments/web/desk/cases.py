"""One comment: what stands above it, why it is where it is, and what was decided about it."""

import flask

from comments import audit, docket, moderation
from comments.web import queries
from comments.web.desk import asked, decisions, rows, visits

blueprint = visits.blueprint("cases")

_ABOVE = 20  # comments above one; the nearest are what it answers
_OTHERS = 5


@blueprint.route("/comments/<comment:comment_id>", methods=["GET", "POST"])
def show(site_id: str, comment_id: str) -> flask.Response:
    """The comment, and what became of a decision about it."""
    visit = visits.enter(site_id)
    queries.read(asked.Nothing)
    report = decisions.taken(visit, comment_id)
    if isinstance(report, flask.Response):
        return report
    case = moderation.case(visit.site.id, comment_id)
    said, secret = case.comment, visits.settings().secret
    others: tuple[rows.Row, ...] = ()
    if said.author.id:
        wanted = docket.Wanted(visit.site.id, docket.STATUSES, said.author.id)
        found = docket.page(wanted, limit=_OTHERS + 1, secret=secret)
        cases = [each for each in found.cases if each.comment.id != comment_id][:_OTHERS]
        others = tuple(rows.of(visit.site, cases))
    return visits.page(
        "comment.html",
        visit,
        row=rows.of(visit.site, [case])[0],
        above=docket.ancestors(said, _ABOVE),
        others=others,
        entries=audit.log(visit.site.id, subject=comment_id),
        report=report,
        words=decisions.WORDS,
        bulk=decisions.BULK,
    )
