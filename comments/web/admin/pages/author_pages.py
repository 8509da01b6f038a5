"""The authors of a site, and a page for each author with all of the author's comments.

The page of an author shows the numbers and the comments of all ids that are linked with the author.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import flask

from comments import errors
from comments.domain.records import Status
from comments.moderation import bans, review_queue
from comments.moderation.policy import author_links, rulebook
from comments.store.models import counter_rows
from comments.tree.counters import leaderboard
from comments.web.admin import comment_list, decision_forms, site_visit
from comments.web.admin.form_types import form_fields, people_forms
from comments.web.rendering import labels

blueprint = site_visit.blueprint("authors")

_PAGE = 50


class LinkedAuthor(NamedTuple):
    """Another author id of the same person, with a name and the numbers as text."""

    id: str
    name: str
    numbers: str


@blueprint.page("/authors", form_fields.ListingQuery)
def index(visit: site_visit.Visit, query: form_fields.ListingQuery) -> flask.Response:
    """List the bans, and all authors with an approved comment, highest score first."""
    page = leaderboard.author_list_page(
        visit.site.id, limit=_PAGE, cursor=query.start, secret=site_visit.settings().secret
    )
    return site_visit.page(
        "authors.html", visit, found=page, in_words=comment_list.in_words,
        bans=_active_bans(rulebook.from_store(visit.site.id)), ban_terms=labels.ban,
    )  # fmt: skip


@blueprint.page("/author", people_forms.AuthorQuery, methods=["GET", "POST"])
def show(visit: site_visit.Visit, query: people_forms.AuthorQuery) -> flask.Response:
    """Show all comments by one author and all linked ids, whatever their status."""
    report = decision_forms.apply_posted(visit)
    if isinstance(report, flask.Response):
        return report
    secret = site_visit.settings().secret
    links = author_links.of_people(visit.site.id, [query.id])
    person = author_links.person(visit.site.id, query.id, links)
    wanted = review_queue.QueueFilter(
        visit.site.id, review_queue.STATUSES, query.id, linked=tuple(person[1:])
    )
    standings = review_queue.standings(visit.site.id, person)
    numbers = sum(map(Counter, standings.values()), Counter[str]())
    page = review_queue.page(wanted, cursor=query.start, secret=secret) if query.id else None
    ban = rulebook.from_store(visit.site.id).ban_of(query.id, visit.now)
    if page is None or not (page.cases or numbers or ban):
        raise errors.NotFound("author", query.id)
    shown = comment_list.of(visit.site, page.cases)
    return site_visit.page(
        "author.html",
        visit,
        query=query,
        name=next((row.author for row in shown if row.case.comment.author.id == query.id), ""),
        numbers=comment_list.in_words(numbers),
        linked=_linked_authors(visit.site.id, person, standings),
        links=[link for link in links if query.id in link.authors],
        ban=ban,
        ban_terms=labels.ban,
        has_hidden=numbers.get(Status.HIDDEN, 0) > 0,
        rows=shown,
        found=page,
        report=report,
        bulk=decision_forms.BULK,
    )


def _linked_authors(
    site: str, person: Sequence[str], standings: Mapping[str, counter_rows.Numbers]
) -> list[LinkedAuthor]:
    others = person[1:]
    names = leaderboard.author_names(site, [(author, "") for author in others])
    return [
        LinkedAuthor(author, named.name, comment_list.in_words(standings[author]))
        for author, named in zip(others, names, strict=True)
    ]


def _active_bans(book: rulebook.Rulebook) -> list[bans.BanEntry]:
    now = datetime.now(UTC)
    return bans.entries([ban for ban in book.bans if ban.is_active(now)][-_PAGE:])
