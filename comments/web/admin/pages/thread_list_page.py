"""The threads of a site, and the page of one thread with comments of any status."""

import flask

from comments import errors
from comments.domain import categories, records
from comments.domain.counters import counting
from comments.moderation import thread_list
from comments.moderation.policy import policy_changes, rulebook, thread_overrides
from comments.threads import thread_info
from comments.tree.counters import totals
from comments.web.admin import comment_list, decision_forms, site_visit
from comments.web.admin.form_types import form_fields, site_forms
from comments.web.http.decode import query_strings
from comments.web.rendering import labels

blueprint = site_visit.blueprint("threads")


@blueprint.page("/threads", site_forms.ThreadsQuery)
def index(visit: site_visit.Visit, query: site_forms.ThreadsQuery) -> flask.Response:
    """List the threads with their counts: those with the newest comments first, or the most."""
    wanted = thread_list.ThreadFilter(
        visit.site.id, query.q.strip(), categories.canonical_term(query.category)
    )
    if query.shown_order == "comments":
        page = thread_list.busiest_threads(wanted.site, wanted.category)
    else:
        page = thread_list.active_threads(
            wanted, cursor=query.start, secret=site_visit.settings().secret
        )
    numbers = totals.of_threads([thread.name for thread in page.threads])
    listed = list(zip(page.threads, numbers, strict=True))
    if query.shown_order == "comments":  # Statistics may be late, and do not count tombstones.
        listed.sort(key=lambda each: -each[1].get(counting.LISTED, 0))
    return site_visit.page(
        "threads.html",
        visit,
        found=page,
        query=query,
        listed=listed,
        shown=counting.LISTED,
        most=thread_list.MOST_RANKED,
        filed=f"{thread_list.MOST_FILED:,}",
    )


@blueprint.route("/thread", methods=["GET", "POST"])
def show(site_id: str) -> flask.Response:
    """Show all comments in a thread, whatever their status, in reading order."""
    visit = site_visit.enter(site_id)
    thread, query = query_strings.read_thread(form_fields.ListingQuery, visit.site)
    report = decision_forms.apply_posted(visit)
    if isinstance(report, flask.Response):
        return report
    name = records.ThreadName(visit.site.id, thread)
    about = _stored_thread(name)
    page = thread_list.thread(name, cursor=query.start, secret=site_visit.settings().secret)
    return site_visit.page(
        "discussion.html",
        visit,
        about=about,
        own=", ".join(labels.label("admin.thread-own", field) for field in about.own),
        policies=list(records.Policy),
        policy=rulebook.from_store(visit.site.id).policy,
        address=thread_info.page_address(about.url, thread, visit.site),
        numbers=comment_list.in_words(totals.of_threads([name])[0]),
        rows=comment_list.of(visit.site, page.cases),
        found=page,
        report=report,
        bulk=decision_forms.BULK,
    )


@blueprint.form("/thread/state", site_forms.ThreadForm)
def settle(visit: site_visit.Visit, sent: site_forms.ThreadForm) -> flask.Response:
    """Lock or unlock a thread, and set its policy."""
    thread, _ = query_strings.read_thread(form_fields.ListingQuery, visit.site)
    name = records.ThreadName(visit.site.id, thread)
    policy_changes.set_thread(
        name,
        visit.account.actor,
        now=visit.now,
        state=sent.state,
        policy=records.Policy(sent.policy) if sent.policy else None,
        inherits=sent.policy == "",
        reason=sent.reason,
    )
    return site_visit.redirect_with_notice(
        visit, f"thread?{site_visit.query(thread=thread)}", "saved"
    )


@blueprint.form("/thread/title", site_forms.ThreadDetailsForm)
def entitle(visit: site_visit.Visit, sent: site_forms.ThreadDetailsForm) -> flask.Response:
    """Set a thread's title, address and categories, or inherit them from its comments again.

    Only the fields that the moderator changed are set, so the thread still inherits the others.
    """
    thread, _ = query_strings.read_thread(form_fields.ListingQuery, visit.site)
    shown = _stored_thread(records.ThreadName(visit.site.id, thread))
    wanted = thread_overrides.NewDetails(inherits=thread_overrides.FIELDS)
    if sent.act == "set":
        names = form_fields.phrases(sent.categories or "")
        keeps_names = sent.categories is None or set(names) == set(shown.categories)
        wanted = thread_overrides.NewDetails(
            title=None if sent.title == shown.title else sent.title,
            url=None if sent.url == shown.url else sent.url,
            categories=None if keeps_names else names,
        )
    thread_overrides.change_details(
        visit.site, thread, wanted, visit.account.actor, now=visit.now, reason=sent.reason
    )
    return site_visit.redirect_with_notice(
        visit, f"thread?{site_visit.query(thread=thread)}", "saved"
    )


def _stored_thread(name: records.ThreadName) -> records.Thread:
    # Bypass the cache, which can be a minute old: the thread may have been locked in the meantime.
    row = thread_list.read_thread(name)
    if row is None:
        raise errors.NotFound("thread", name.id)
    return row


blueprint.show_again(show)
