"""The authors of a site, and one of them with all that is his."""

from datetime import UTC, datetime

import flask

from comments import authors, banning, counts, docket, errors, rulebook
from comments.records import Status
from comments.web import queries
from comments.web.desk import asked, decisions, rows, visits

blueprint = visits.blueprint("authors")

_PAGE = 50


@blueprint.get("/authors")
def index(site_id: str) -> flask.Response:
    """Those with an approved comment, best first."""
    visit = visits.enter(site_id)
    query = queries.read(asked.Listing)
    found = authors.known(
        visit.site.id, limit=_PAGE, cursor=query.start, secret=visits.settings().secret
    )
    return visits.page(
        "authors.html", visit, found=found, in_words=rows.in_words,
        bans=_standing(rulebook.read(visit.site.id)), beside=banning.beside,
    )  # fmt: skip


@blueprint.route("/author", methods=["GET", "POST"])
def show(site_id: str) -> flask.Response:
    """One author's comments, whatever became of them."""
    visit = visits.enter(site_id)
    query = queries.read(asked.Author)
    report = decisions.taken(visit)
    if isinstance(report, flask.Response):
        return report
    secret = visits.settings().secret
    wanted = docket.Wanted(visit.site.id, docket.STATUSES, query.id)
    numbers: counts.Numbers = docket.standings(visit.site.id, [query.id]).get(query.id, {})
    found = docket.page(wanted, cursor=query.start, secret=secret) if query.id else None
    ban = rulebook.read(visit.site.id).ban_of(query.id, datetime.now(UTC))
    if found is None or not (found.cases or numbers or ban):
        raise errors.NotFound("author", query.id)
    shown = rows.of(visit.site, found.cases)
    return visits.page(
        "author.html",
        visit,
        query=query,
        name=shown[0].author if shown else "",
        numbers=rows.in_words(numbers),
        ban=ban,
        beside=banning.beside,
        has_hidden=numbers.get(Status.HIDDEN, 0) > 0,
        rows=shown,
        found=found,
        report=report,
        words=decisions.WORDS,
        bulk=decisions.BULK,
    )


def _standing(book: rulebook.Book) -> list[banning.Listed]:
    now = datetime.now(UTC)
    return banning.listed([ban for ban in book.bans if ban.stands(now)][-_PAGE:])
