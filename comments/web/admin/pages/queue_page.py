"""The review queue of a site, filtered, and the reported comments."""

import flask
import msgspec

from comments.domain.moderation import ruling_texts
from comments.moderation import reports, review_queue
from comments.moderation.policy import rulebook
from comments.tree.counters import totals
from comments.web.admin import (
    comment_list,
    comment_queries,
    decision_forms,
    site_visit,
)
from comments.web.http import responses
from comments.web.sign_in import signed_in

blueprint = site_visit.blueprint("queue")


@blueprint.get("")
@blueprint.get("/")
def find(site_id: str) -> flask.Response:
    """Redirect a site's admin address to its review queue."""
    return signed_in.redirect_to(f"admin/sites/{site_visit.enter(site_id).site.id}/queue")


@blueprint.page("/queue", comment_queries.QueueQuery, methods=["GET", "POST"])
def show(visit: site_visit.Visit, query: comment_queries.QueueQuery) -> flask.Response:
    """Show the comments, and the outcomes if decisions were posted."""
    report = decision_forms.apply_posted(visit)
    if isinstance(report, flask.Response):
        return report
    secret = site_visit.settings().secret
    wanted = query.queue_filter(visit.site)
    page = review_queue.page(wanted, cursor=query.start, secret=secret)
    return site_visit.page(
        "queue.html",
        visit,
        query=query,
        rows=comment_list.of(visit.site, page.cases),
        found=page,
        is_first=query == comment_queries.QueueQuery(),
        asked=visit.now,
        is_search=wanted.is_search,
        statuses=review_queue.STATUSES,
        numbers=totals.of_site(visit.site.id),
        report=report,
        bulk=decision_forms.BULK,
        reasons=_reasons(visit.site.id, query.why),
    )


@blueprint.page("/queue/news", comment_queries.NewsQuery)
def tell(visit: site_visit.Visit, query: comment_queries.NewsQuery) -> flask.Response:
    """Tell the page's script how many comments are pending, and how many of them are new."""
    arrived = review_queue.QueueFilter(visit.site.id, since=query.since)
    numbers = {
        "pending": review_queue.count_pending(visit.site.id),
        "new": review_queue.count(arrived, review_queue.MOST_COUNTED),
    }
    return responses.cacheable(msgspec.json.encode(numbers))


def _reasons(site: str, chosen: str) -> list[tuple[str, str]]:
    """Return the kinds of rulings, the site's rules and the chosen rule, with their texts."""
    kinds = [(kind, ruling_texts.filter_text(kind)) for kind in ruling_texts.FILTERS]
    rules = [f"{ruling_texts.RULE}:{rule.id}" for rule in rulebook.for_pages(site).rules]
    rules += [chosen] if ":" in chosen and chosen not in rules else []
    return [*kinds, *((rule, ruling_texts.decision_text(rule, "")) for rule in rules)]


@blueprint.page("/reported", methods=["GET", "POST"])
def show_reported(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Show the comments with open reports, most reported first."""
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
