"""The authors of a site, and a page for each author with all of the author's comments."""

from datetime import UTC, datetime

import flask

from comments import errors
from comments.domain.records import Status
from comments.moderation import bans, review_queue
from comments.moderation.policy import rulebook
from comments.store.models import counter_rows
from comments.tree.counters import leaderboard
from comments.web.admin import comment_list, decision_forms, site_visit
from comments.web.admin.form_types import form_fields, people_forms
from comments.web.http.decode import query_strings
from comments.web.rendering import labels

blueprint = site_visit.blueprint("authors")

_PAGE = 50


@blueprint.get("/authors")
def index(site_id: str) -> flask.Response:
    """List the bans, and all authors with an approved comment, highest score first."""
    visit = site_visit.enter(site_id)
    query = query_strings.read(form_fields.ListingQuery)
    page = leaderboard.author_list_page(
        visit.site.id, limit=_PAGE, cursor=query.start, secret=site_visit.settings().secret
    )
    return site_visit.page(
        "authors.html", visit, found=page, in_words=comment_list.in_words,
        bans=_active_bans(rulebook.from_store(visit.site.id)), ban_terms=labels.ban,
    )  # fmt: skip


@blueprint.route("/author", methods=["GET", "POST"])
def show(site_id: str) -> flask.Response:
    """Show all comments by one author, whatever their status."""
    visit = site_visit.enter(site_id)
    query = query_strings.read(people_forms.AuthorQuery)
    report = decision_forms.apply_posted(visit)
    if isinstance(report, flask.Response):
        return report
    secret = site_visit.settings().secret
    wanted = review_queue.QueueFilter(visit.site.id, review_queue.STATUSES, query.id)
    numbers: counter_rows.Numbers = review_queue.standings(visit.site.id, [query.id]).get(
        query.id, {}
    )
    page = review_queue.page(wanted, cursor=query.start, secret=secret) if query.id else None
    ban = rulebook.from_store(visit.site.id).ban_of(query.id, datetime.now(UTC))
    if page is None or not (page.cases or numbers or ban):
        raise errors.NotFound("author", query.id)
    shown = comment_list.of(visit.site, page.cases)
    return site_visit.page(
        "author.html",
        visit,
        query=query,
        name=shown[0].author if shown else "",
        numbers=comment_list.in_words(numbers),
        ban=ban,
        ban_terms=labels.ban,
        has_hidden=numbers.get(Status.HIDDEN, 0) > 0,
        rows=shown,
        found=page,
        report=report,
        bulk=decision_forms.BULK,
    )


def _active_bans(book: rulebook.Rulebook) -> list[bans.BanEntry]:
    now = datetime.now(UTC)
    return bans.entries([ban for ban in book.bans if ban.is_active(now)][-_PAGE:])
