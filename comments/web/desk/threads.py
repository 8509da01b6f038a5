"""The threads of a site, and one of them with all that is held in it."""

from datetime import UTC, datetime

import flask

from comments import counters, counts, docket, errors, naming, policies, records, rulebook, threads
from comments.web import forms, queries
from comments.web.desk import asked, decisions, rows, visits

blueprint = visits.blueprint("threads")


@blueprint.get("/threads")
def index(site_id: str) -> flask.Response:
    """Threads, those that began last first, with their numbers."""
    visit = visits.enter(site_id)
    query = queries.read(asked.Listing)
    found = docket.threads(visit.site.id, cursor=query.start, secret=visits.settings().secret)
    numbers = counts.of_threads([each.name for each in found.threads])
    return visits.page(
        "threads.html",
        visit,
        found=found,
        listed=list(zip(found.threads, numbers, strict=True)),
        shown=counters.LISTED,
    )


@blueprint.route("/thread", methods=["GET", "POST"])
def show(site_id: str) -> flask.Response:
    """A thread in reading order, whatever stands in it."""
    visit = visits.enter(site_id)
    thread, query = queries.read_thread(asked.Listing, visit.site)
    report = decisions.taken(visit)
    if isinstance(report, flask.Response):
        return report
    name = records.ThreadName(visit.site.id, thread)
    about = _stored(name)
    found = docket.thread(name, cursor=query.start, secret=visits.settings().secret)
    return visits.page(
        "discussion.html",
        visit,
        about=about,
        policies=list(records.Policy),
        policy=rulebook.read(visit.site.id).policy,
        address=threads.address(about.url, visit.site),
        numbers=rows.in_words(counts.of_threads([name])[0]),
        rows=rows.of(visit.site, found.cases),
        found=found,
        report=report,
        words=decisions.WORDS,
        bulk=decisions.BULK,
    )


@blueprint.post("/thread/state")
def settle(site_id: str) -> flask.Response:
    """Lock a thread or open it, and say which policy holds there."""
    visit = visits.enter(site_id)
    thread, _ = queries.read_thread(asked.Listing, visit.site)
    sent = forms.read(asked.Thread)
    name = records.ThreadName(visit.site.id, thread)
    policies.set_thread(
        name,
        visit.account.actor,
        now=datetime.now(UTC),
        state=sent.state,
        policy=records.Policy(sent.policy) if sent.policy else None,
        inherits=not sent.policy,
        reason=sent.reason,
    )
    return visits.done(visit, f"thread?{visits.query(thread=thread)}", "saved")


@blueprint.post("/thread/title")
def entitle(site_id: str) -> flask.Response:
    """Set what the thread shows of itself, or give it back to its comments.

    Only what differs from what was shown is set: the rest stays what comments bring.
    """
    visit = visits.enter(site_id)
    thread, _ = queries.read_thread(asked.Listing, visit.site)
    sent, now = forms.read(asked.Title), datetime.now(UTC)
    shown = _stored(records.ThreadName(visit.site.id, thread))
    wanted = naming.Wanted(inherits=naming.FIELDS)
    if sent.act == "set":
        names = asked.phrases(sent.categories)
        wanted = naming.Wanted(
            title=None if sent.title == shown.title else sent.title,
            url=None if sent.url == shown.url else sent.url,
            categories=None if set(names) == set(shown.categories) else names,
        )
    naming.name(visit.site, thread, wanted, visit.account.actor, now=now, reason=sent.reason)
    return visits.done(visit, f"thread?{visits.query(thread=thread)}", "saved")


def _stored(name: records.ThreadName) -> records.Thread:
    """The thread as it is now: a copy may be a minute old, and somebody just locked it."""
    row = docket.stored_thread(name)
    if row is None:
        raise errors.NotFound("thread", name.id)
    return row
