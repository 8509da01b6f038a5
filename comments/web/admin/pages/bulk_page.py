"""Bulk decisions: one decision about all comments that the queue's filters find, as a job."""

from collections.abc import Sequence

import flask
import msgspec

from comments.domain import records
from comments.domain.records import Status, Verb
from comments.moderation import bulk_decisions, review_queue
from comments.web.admin import comment_queries, site_visit
from comments.web.http import responses
from comments.web.http.decode import forms
from comments.web.sign_in import signed_in

blueprint = site_visit.blueprint("bulk")


@blueprint.page("/queue/all", comment_queries.QueueQuery, methods=["GET", "POST"])
def start(visit: site_visit.Visit, query: comment_queries.QueueQuery) -> flask.Response:
    """Ask for the decision about all comments of a filter, or start it."""
    wanted = query.queue_filter(visit.site)
    if flask.request.method == "POST":
        sent = forms.read(comment_queries.BulkForm)
        job = bulk_decisions.start(
            wanted, sent.verb, visit.account.actor,
            now=min(visit.now, sent.asked), reason=sent.reason.strip(),
        )  # fmt: skip
        return _show_job(visit, job)
    most = bulk_decisions.MOST
    matching = None if wanted.is_search else review_queue.count(wanted, most + 1)
    return site_visit.page(
        "bulk.html",
        visit,
        query=query,
        matching=matching,
        asked=visit.now,
        most=most,
        verbs=_verbs(query.statuses),
        jobs=bulk_decisions.jobs(visit.site.id),
    )


@blueprint.page("/queue/jobs/<job>")
def show(visit: site_visit.Visit, _query: object, job: str) -> flask.Response:
    """Show the progress of a job."""
    stored = bulk_decisions.get(visit.site.id, job)
    may_undo = stored.may_be_undone(visit.now) and stored.done > 0
    return site_visit.page("bulk_job.html", visit, job=stored, may_undo=may_undo)


@blueprint.page("/queue/jobs/<job>/state")
def tell(visit: site_visit.Visit, _query: object, job: str) -> flask.Response:
    """Tell the page's script, with an ETag, how far a job is."""
    stored = bulk_decisions.get(visit.site.id, job)
    state = {"state": stored.state, "seen": stored.seen, "total": stored.total, "left": ""}
    return responses.cacheable(msgspec.json.encode(state))


@blueprint.form("/queue/jobs/<job>", comment_queries.BulkChangeForm)
def change(
    visit: site_visit.Visit, sent: comment_queries.BulkChangeForm, job: str
) -> flask.Response:
    """Stop a job, or begin to undo it."""
    if sent.act == "cancel":
        return _show_job(visit, bulk_decisions.cancel(visit.site.id, job, now=visit.now))
    undone = bulk_decisions.undo(visit.site.id, job, visit.account.actor, now=visit.now)
    return _show_job(visit, undone)


def _show_job(visit: site_visit.Visit, job: bulk_decisions.BulkJob) -> flask.Response:
    return signed_in.redirect_to(f"admin/sites/{visit.site.id}/queue/jobs/{job.id}")


def _verbs(statuses: Sequence[Status]) -> list[Verb]:
    """Return the decisions that can change a comment of these statuses."""
    return [
        verb for verb in bulk_decisions.VERBS
        if statuses != (records.BECOMES[verb],)
        and (verb is not Verb.HIDE or Status.APPROVED in statuses)
    ]  # fmt: skip
