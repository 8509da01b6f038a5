"""The page of a comment: its ancestors, the decisions about it, and forms to edit and answer it."""

import secrets

import flask

from comments.domain import records
from comments.domain.records import Status
from comments.events import audit_log
from comments.limits import post_limits
from comments.moderation import decisions, review_queue
from comments.posting import admission, new_comment
from comments.web.admin import comment_list, decision_forms, site_visit
from comments.web.admin.form_types import form_fields, site_forms
from comments.web.http import context
from comments.web.rendering import labels

blueprint = site_visit.blueprint("cases")

_ABOVE = 20  # The maximum number of ancestors that the page shows.
_OTHERS = 5


@blueprint.page("/comments/<comment:comment_id>", methods=["GET", "POST"])
def show(visit: site_visit.Visit, _query: object, comment_id: str) -> flask.Response:
    """Show the comment, and the outcome if a decision was posted."""
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
        is_editable=comment.status is not Status.RETRACTED,
        is_answerable=comment.status is Status.APPROVED,
        key=secrets.token_hex(16),
    )


@blueprint.form("/comments/<comment:comment_id>/text", site_forms.CommentTextForm)
def edit(
    visit: site_visit.Visit, sent: site_forms.CommentTextForm, comment_id: str
) -> flask.Response:
    """Replace the comment's text. Readers see that staff edited it."""
    revision = form_fields.number("revision", sent.revision, digits=9) if sent.revision else None
    decisions.rewrite(
        visit.site.id,
        comment_id,
        sent.body,
        visit.account.actor,
        now=visit.now,
        reason=sent.reason.strip(),
        revision=revision,
    )
    return site_visit.redirect_with_notice(visit, f"comments/{comment_id}", "edited")


@blueprint.form("/comments/<comment:comment_id>/reply", site_forms.ReplyForm)
def reply(visit: site_visit.Visit, sent: site_forms.ReplyForm, comment_id: str) -> flask.Response:
    """Publish a reply to the comment in the account's name, and show it."""
    account = visit.account
    answered = decisions.case(visit.site.id, comment_id).comment
    made = admission.Submission(
        thread=answered.thread,
        parent=comment_id,
        author=records.Author(account.name, id=account.author, is_staff=True),
        body=sent.body,
        key=sent.key,
        since=account.created,
    )
    # Readers behind the same network use up its limits, and moderators are no bots.
    request = context.request_to(post_limits.without_limits(visit.site))
    posted = new_comment.post(made, request).comment
    return site_visit.redirect_with_notice(visit, f"comments/{posted.id}", "replied")


blueprint.show_again(show)
