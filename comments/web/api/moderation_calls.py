"""The calls of `/api/v1` for moderation: own held comments, reports and classifier verdicts.

The author of a held comment is the only reader who sees it, and must send a token. No cache stores
a response that contains the comment, and public pages never contain it. A verdict must be signed
with the secret of the site's own classifier.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal

import flask
import msgspec

from comments import errors
from comments.domain import presentation, records
from comments.domain.moderation import classifier_verdicts
from comments.limits.site_request import SiteRequest
from comments.moderation import decisions, reports
from comments.moderation.classifiers import classifier_requests
from comments.moderation.policy import author_links
from comments.posting import file_report, own_comment
from comments.sites import site_settings
from comments.web.api.callers import api_callers
from comments.web.http import context, cors, problems, responses
from comments.web.http.decode import json_bodies, parameters, query_strings

# This blueprint is nested in the blueprint of `comment_calls`, whose checks run first.
blueprint = flask.Blueprint("verdicts", __name__)

_SIGNED = ("webhook-id", "webhook-timestamp", "webhook-signature")
_REFUSED = {
    classifier_requests.AnswerResult.OTHER: "answered-before",
    classifier_requests.AnswerResult.OVERTAKEN: "decided-since",
}


class NewReport(parameters.Request, frozen=True):
    """The reason for reporting a comment to the site's moderators.

    `proof` is a solved challenge for the purpose `report`. Callers with a token need no proof.
    """

    reason: reports.Reason = reports.Reason.OTHER
    proof: str = ""


class GivenOpinion(parameters.Request, frozen=True):
    """The verdict from a site's own classifier. `reason` is one line for moderators."""

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    verdict: classifier_verdicts.Verdict
    reason: Annotated[str, msgspec.Meta(max_length=classifier_verdicts.LONGEST_REASON)] = ""


class OwnHeldQuery(parameters.Request, frozen=True):
    """The parameters of a list of the caller's own comments, apart from `thread` and `page`.

    If `claimed` is 1, the list also contains imported comments that the caller owns.
    """

    claimed: Literal["", "1"] = ""


class OwnHeld(msgspec.Struct, frozen=True):
    """The caller's own pending and approved comments in a thread, in reading order."""

    comments: list[presentation.OwnComment]


class Reported(msgspec.Struct, frozen=True):
    """Confirms that a report was received. The response does not depend on the report's effect."""

    status: Literal["reported"] = "reported"


class TakenOpinion(msgspec.Struct, frozen=True):
    """Confirms that a verdict was received. A repeated request gets the same response."""

    status: Literal["taken"] = "taken"


@blueprint.get("/sites/<site:site_id>/held")
@cors.personal
def list_own_held(site_id: str) -> flask.Response:
    """List the caller's own comments in a thread, including held ones."""
    site = site_settings.get(site_id)
    thread, query = query_strings.read_thread(OwnHeldQuery, site)
    author = api_callers.required_caller(site).id
    claimed = author_links.claimed_authors(site.id, author) if query.claimed else []
    comments = decisions.own_comments(records.ThreadName(site.id, thread), author, *claimed)
    settings, now = context.settings(), datetime.now(UTC)
    shown = [
        presentation.author_view(
            comment, editable_until=own_comment.editable_until(comment, settings, now)
        )
        for comment in comments
    ]
    return responses.personal(OwnHeld(shown))


@blueprint.post("/comments/<comment:comment_id>/report")
def report_comment(comment_id: str) -> flask.Response:
    """Report a comment to the moderators. Each caller counts only once per comment.

    Callers without a token must send a proof of work.
    """
    query_strings.read(parameters.NoQuery)
    request: SiteRequest = flask.g.asked
    speaker, sent = api_callers.optional_caller(request.site), json_bodies.read(NewReport)
    author = speaker.id if speaker else file_report.newcomer_id(sent.proof, request)
    file_report.report(comment_id, sent.reason, request, author=author)
    return responses.fresh(Reported(), 202)


@blueprint.post("/sites/<site:site_id>/opinions")
def give_opinion(site_id: str) -> flask.Response:
    """Accept a late verdict from a site's own classifier."""
    query_strings.read(parameters.NoQuery)
    settings, now = context.settings(), datetime.now(UTC)
    data, sent = json_bodies.raw(), flask.request.headers
    named = {name: sent.get(name, "") for name in _SIGNED}
    if not classifier_requests.is_from_site(site_id, named, data, secret=settings.secret, now=now):
        raise problems.Unauthenticated("bad-signature")
    given = json_bodies.decode(data, GivenOpinion)
    opinion = classifier_verdicts.ClassifierAnswer(given.verdict, given.reason)
    taken = classifier_requests.hear(site_id, given.question, opinion, settings=settings, now=now)
    if taken in _REFUSED:
        raise errors.Conflict(_REFUSED[taken])
    return responses.fresh(TakenOpinion())
