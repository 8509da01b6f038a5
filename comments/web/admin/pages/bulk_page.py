"""Bulk decisions: one decision about all comments that the queue's filters find, as a job."""

from collections.abc import Sequence
from datetime import UTC, datetime

import flask
import msgspec

from comments.domain.records import Status, Verb
from comments.moderation import bulk_decisions, review_queue
from comments.web.admin import comment_queries, decision_forms, site_visit
from comments.web.admin.form_types import form_fields
from comments.web.http import responses
from comments.web.http.decode import forms, query_strings
from comments.web.sign_in import signed_in

blueprint = site_visit.blueprint("bulk")


@blueprint.route("/queue/all", methods=["GET", "POST"])
def start(site_id: str) -> flask.Response:
    """Ask for the decision about all comments of a filter, or start it."""
    visit = site_visit.enter(site_id)
    query = query_strings.read(comment_queries.QueueQuery)
    wanted = query.queue_filter(visit.site)
    now = datetime.now(UTC)
    if flask.request.method == "POST":
        sent = forms.read(comment_queries.BulkForm)
        job = bulk_decisions.start(
            wanted, sent.verb, visit.account.actor,
            now=min(now, sent.asked), reason=sent.reason.strip(),
        )  # fmt: skip
        return _show_job(visit, job)
    most = bulk_decisions.MOST
    matching = None if wanted.is_search else review_queue.count(wanted, most + 1)
    return site_visit.page(
        "bulk.html",
        visit,
        query=query,
        matching=matching,
        asked=now,
        most=most,
        verbs=_verbs(query.statuses),
        jobs=bulk_decisions.jobs(visit.site.id),
    )


@blueprint.get("/queue/jobs/<job>")
def show(site_id: str, job: str) -> flask.Response:
    """Show the progress of a job."""
    visit = site_visit.enter(site_id)
    query_strings.read(form_fields.EmptyQuery)
    stored = bulk_decisions.get(visit.site.id, job)
    may_undo = stored.may_be_undone(datetime.now(UTC)) and stored.done > 0
    return site_visit.page("bulk_job.html", visit, job=stored, may_undo=may_undo)


@blueprint.get("/queue/jobs/<job>/state")
def tell(site_id: str, job: str) -> flask.Response:
    """Tell the page's script, with an ETag, how far a job is."""
    visit = site_visit.enter(site_id)
    query_strings.read(form_fields.EmptyQuery)
    stored = bulk_decisions.get(visit.site.id, job)
    state = {"state": stored.state, "seen": stored.seen, "total": stored.total, "left": ""}
    return responses.cacheable(msgspec.json.encode(state))


@blueprint.post("/queue/jobs/<job>")
def change(site_id: str, job: str) -> flask.Response:
    """Stop a job, or begin to undo it."""
    visit = site_visit.enter(site_id)
    now, sent = datetime.now(UTC), forms.read(comment_queries.BulkChangeForm)
    if sent.act == "cancel":
        return _show_job(visit, bulk_decisions.cancel(visit.site.id, job, now=now))
    undone = bulk_decisions.undo(visit.site.id, job, visit.account.actor, now=now)
    return _show_job(visit, undone)


def _show_job(visit: site_visit.Visit, job: bulk_decisions.BulkJob) -> flask.Response:
    return signed_in.redirect_to(f"admin/sites/{visit.site.id}/queue/jobs/{job.id}")


def _verbs(statuses: Sequence[Status]) -> list[Verb]:
    """Return the decisions that can change a comment of these statuses."""
    return [
        verb for verb in bulk_decisions.VERBS
        if statuses != (decision_forms.BECOMES[verb],)
        and (verb is not Verb.HIDE or Status.APPROVED in statuses)
    ]  # fmt: skip
