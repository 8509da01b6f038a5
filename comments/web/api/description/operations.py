"""List all calls of the API with the types of their requests and responses.

`openapi` describes the calls in the OpenAPI document. A test compares `OPERATIONS` with the routes.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from comments.domain.crypto import proof_of_work
from comments.transfer import personal_data
from comments.tree.counters import audience_scan
from comments.web.api import (
    category_calls,
    comment_shapes,
    follow_calls,
    inbox_calls,
    moderation_calls,
    moderator_calls,
    own_data,
)
from comments.web.api.site_statistics import statistics_shapes
from comments.web.http.decode import parameters

Json: TypeAlias = dict[str, Any]

_THREAD: tuple[Json, ...] = (
    {
        "name": "thread",
        "in": "query",
        "description": "The thread's id, chosen by the site. Send either this or `page`.",
        "schema": {"type": "string", "minLength": 1},
    },
    {
        "name": "page",
        "in": "query",
        "description": "The URL of the thread's page. Send either this or `thread`.",
        "schema": {"type": "string", "minLength": 1},
    },
)
_PAGE: Json = {
    "name": "page",
    "in": "query",
    "description": "The URL of the thread's page, or a number: the page of the list, from 1.",
    "schema": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "minLength": 1}]},
}
_KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Makes retries safe: requests with the same key post only one comment.",
    "schema": {"type": "string", "minLength": 16, "maxLength": 255, "pattern": "^[!-~]+$"},
}
_REVISION: Json = {
    "name": "If-Match",
    "in": "header",
    "description": "Change the comment only if it is at this revision.",
    "schema": {"type": "string", "pattern": '^"[1-9][0-9]*"$'},
}
_SIGNED: tuple[Json, ...] = tuple(
    {
        "name": name,
        "in": "header",
        "description": description,
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    }
    for name, description in (
        ("webhook-id", "An id of the message, as in Standard Webhooks."),
        ("webhook-timestamp", "Seconds since 1970; at most five minutes from now."),
        ("webhook-signature", "The signature of id, timestamp and body with the shared secret."),
    )
)
_CATEGORY: Json = {
    "name": "category",
    "in": "query",
    "description": "A category, such as `sport/football`, or `*/` and a part of its path. "
    "Only `limit` and `cursor` can be combined with it.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 1000},
}
KNOWN: Json = {
    "name": "If-None-Match",
    "in": "header",
    "description": "Answer 304 without a body if the ETag is one of these.",
    "schema": {"type": "string"},
}


class Operation(msgspec.Struct, frozen=True):
    """One call: its route, its parameters and body, its response, and its error statuses."""

    method: str
    path: str
    name: str
    summary: str
    answer: type[msgspec.Struct] | None
    or_answer: type[msgspec.Struct] | None = None  # The response to some queries.
    query: type[msgspec.Struct] = parameters.NoQuery
    body: type[msgspec.Struct] | None = None
    extra: tuple[Json, ...] = ()
    status: int = 200
    also: tuple[int, ...] = ()  # Other success statuses with the same response body.
    headers: tuple[str, ...] = ()  # The headers of the response.
    is_table: bool = False  # Whether the response can also be CSV.
    # Whether the call ignores, accepts or requires a token of a guest or an account, or requires a
    # moderator's token.
    security: tuple[Mapping[str, list[str]], ...] = ()
    refuses: tuple[int, ...] = ()  # The statuses of errors that only some operations return.

    @property
    def refusals(self) -> list[int]:
        """Return the statuses of all errors that the operation may return."""
        if self.answer is None:
            return []
        statuses = {400, 404, 503, *self.refuses}
        if self.body is not None:
            statuses |= {403, 413, 415}
        if self.security:
            statuses |= {401, 403}
        return sorted(statuses)


_TOKEN_TAKEN: tuple[Json, ...] = ({}, {"guest": []})
_TOKEN_NEEDED: tuple[Json, ...] = ({"guest": []},)
_MODERATOR: tuple[Json, ...] = ({"moderator": []},)
_TAG = ("ETag",)
_COMMENTS = "/sites/{site}/comments"
_ONE = "/comments/{id}"
_FOLLOWING = "/sites/{site}/following"
_MODERATION = "/sites/{site}/moderation"
_STATISTICS = f"{_MODERATION}/statistics"
_REPORT: dict[str, Any] = {
    "security": _MODERATOR,
    "headers": ("Link",),
    "is_table": True,
}

OPERATIONS = (
    Operation(
        "get", _COMMENTS, "listComments",
        "List a page of a thread or, with `category`, the newest comments of a category",
        comment_shapes.CommentPage, category_calls.CategoryComments, refuses=(410,),
        query=comment_shapes.ListQuery, extra=(_THREAD[0], _PAGE, _CATEGORY, KNOWN), headers=_TAG,
    ),
    Operation(
        "get", "/sites/{site}/threads", "listThreads", "List the threads of a category",
        category_calls.CategoryThreads, query=category_calls.CategoryListQuery,
        extra=({**_CATEGORY, "required": True}, KNOWN), headers=_TAG,
    ),
    Operation(
        "post", _COMMENTS, "postComment", "Post a comment", comment_shapes.PostedComment,
        refuses=(409, 429), body=comment_shapes.NewComment, extra=(*_THREAD, _KEY), status=201,
        also=(202,), security=_TOKEN_TAKEN, headers=("Location", "ETag", "Idempotent-Replayed"),
    ),
    Operation(
        "get", "/sites/{site}/challenge", "challenge",
        "Get a challenge to solve before a post, a vote, a report or a sign-in mail",
        proof_of_work.Challenge, query=comment_shapes.ChallengeQuery,
    ),
    Operation(
        "get", _ONE, "showComment", "Get a comment with its ancestors", comment_shapes.OneComment,
        headers=_TAG,
    ),
    Operation(
        "get", "/sites/{site}/comment", "findComment",
        "Get the comment with a slug, with its ancestors", comment_shapes.OneComment,
        query=comment_shapes.SlugQuery, extra=_THREAD, headers=_TAG,
    ),
    Operation(
        "patch", _ONE, "editComment", "Replace the text of your own comment",
        comment_shapes.ChangedComment, refuses=(409, 412, 429), body=comment_shapes.NewBody,
        extra=(_REVISION,), security=_TOKEN_NEEDED, headers=_TAG,
    ),
    Operation(
        "delete", _ONE, "retractComment", "Delete your own comment", comment_shapes.ChangedComment,
        refuses=(409, 412), extra=(_REVISION,), security=_TOKEN_NEEDED, headers=_TAG,
    ),
    Operation(
        "post", f"{_MODERATION}/session", "beginModeration",
        "Exchange the code of the moderation window for a moderator's token",
        moderator_calls.ModeratorToken, refuses=(401,), body=moderator_calls.ModerationCode,
    ),
    Operation(
        "delete", f"{_MODERATION}/session", "endModeration", "End a moderator's token",
        moderator_calls.EndedModeration, security=_MODERATOR,
    ),
    Operation(
        "get", f"{_MODERATION}/comments", "listPending", "List the pending comments of a thread",
        moderator_calls.HeldComments, extra=_THREAD, security=_MODERATOR,
    ),
    Operation(
        "post", f"{_MODERATION}/comments", "postAsStaff", "Post a comment as a moderator",
        comment_shapes.PostedComment, refuses=(409, 429), body=comment_shapes.NewComment,
        extra=(*_THREAD, _KEY), status=201, also=(202,), security=_MODERATOR, headers=_TAG,
    ),
    Operation(
        "post", f"{_ONE}/decision", "decide", "Decide about a comment as a moderator",
        moderator_calls.ModeratedComment, refuses=(409, 412), body=moderator_calls.NewDecision,
        extra=(_REVISION,), security=_MODERATOR, headers=_TAG,
    ),
    Operation(
        "put", f"{_ONE}/ban", "banAuthor", "Ban the author of a comment as a moderator",
        moderator_calls.BannedAuthor, refuses=(409,), body=moderator_calls.NewBan,
        security=_MODERATOR,
    ),
    Operation(
        "delete", f"{_ONE}/ban", "unbanAuthor", "Lift the ban of a comment's author",
        moderator_calls.BannedAuthor, security=_MODERATOR,
    ),
    Operation(
        "get", f"{_STATISTICS}/categories", "listCategories",
        "List the numbers of a site's categories, or of a category and its subcategories",
        statistics_shapes.CategoryReport, query=statistics_shapes.CategoriesReportQuery, **_REPORT,
    ),
    Operation(
        "get", f"{_STATISTICS}/days", "listDays", "List the numbers of each day that has comments",
        statistics_shapes.DayReport, query=statistics_shapes.DayReportQuery, **_REPORT,
    ),
    Operation(
        "get", f"{_STATISTICS}/category-commenters", "listCategoryCommenters",
        "List the authors in a category and its subcategories", statistics_shapes.CommenterReport,
        query=statistics_shapes.CategoryReportQuery, **_REPORT,
    ),
    Operation(
        "get", f"{_STATISTICS}/thread-commenters", "listThreadCommenters",
        "List the authors in a thread", statistics_shapes.CommenterReport,
        query=statistics_shapes.ReportQuery, extra=_THREAD, **_REPORT,
    ),
    Operation(
        "get", f"{_STATISTICS}/thread-followers", "listThreadFollowers",
        "List the readers who follow a thread without mail and agreed to be listed",
        statistics_shapes.FollowerReport, query=statistics_shapes.ReportQuery, extra=_THREAD,
        **_REPORT,
    ),
    Operation(
        "get", f"{_STATISTICS}/author-categories", "listAuthorCategories",
        "List the categories in which an author has commented",
        statistics_shapes.AuthorCategoryReport, query=statistics_shapes.AuthorReportQuery,
        **_REPORT,
    ),
    Operation(
        "get", f"{_STATISTICS}/author-threads", "listAuthorThreads",
        "List the threads in which an author has commented", statistics_shapes.AuthorThreadReport,
        query=statistics_shapes.AuthorReportQuery, **_REPORT,
    ),
    Operation(
        "get", f"{_STATISTICS}/pages", "listBusiestPages",
        "List the pages with the most comments in a period", statistics_shapes.BusiestPages,
        query=statistics_shapes.BusiestReportQuery, security=_MODERATOR, is_table=True,
    ),
    Operation(
        "get", f"{_STATISTICS}/people", "listBusiestPeople",
        "List the people with the most comments in a period", statistics_shapes.BusiestPeople,
        query=statistics_shapes.BusiestReportQuery, security=_MODERATOR, is_table=True,
    ),
    Operation(
        "get", f"{_STATISTICS}/hours", "listHours",
        "List the hours of the day with their comments in a period",
        statistics_shapes.BusiestHours, query=statistics_shapes.PeriodReportQuery,
        security=_MODERATOR, is_table=True,
    ),
    Operation(
        "get", f"{_STATISTICS}/audiences", "countAudiences",
        "Count the authors in audiences: combinations of categories, threads and periods",
        statistics_shapes.AudienceReport, query=statistics_shapes.AudiencesQuery,
        security=_MODERATOR, is_table=True,
    ),
    Operation(
        "get", f"{_STATISTICS}/audience-cost", "priceAudiences",
        "Say what it costs to count audiences", audience_scan.ScanCost,
        query=statistics_shapes.AudienceQuery, security=_MODERATOR,
    ),
    Operation(
        "get", f"{_STATISTICS}/audience-commenters", "listAudienceCommenters",
        "List the authors in an audience", statistics_shapes.MemberReport,
        query=statistics_shapes.MembersQuery, **_REPORT,
    ),
    Operation(
        "get", f"{_STATISTICS}/counters", "listCounters", "List a site's declared counters",
        statistics_shapes.CounterList, security=_MODERATOR,
    ),
    Operation(
        "get", f"{_STATISTICS}/counter-numbers", "listCounterNumbers",
        "List the numbers of a declared counter", statistics_shapes.CounterReport,
        query=statistics_shapes.CounterReportQuery, **_REPORT,
    ),
    Operation(
        "get", f"{_ONE}/replies", "listReplies", "List a page of the comments below a comment",
        comment_shapes.CommentPage, query=comment_shapes.RepliesQuery, extra=(KNOWN,),
        headers=_TAG,
    ),
    Operation(
        "get", "/sites/{site}/subscription", "offerMail", "Tell whether this service sends mail",
        comment_shapes.MailOffer,
    ),
    Operation(
        "put", "/sites/{site}/subscription", "subscribe",
        "Ask an address to confirm mail about new comments in a thread, or about replies",
        comment_shapes.ConfirmationRequested, refuses=(409, 429),
        body=comment_shapes.NewSubscription, extra=_THREAD, status=202, security=_TOKEN_TAKEN,
    ),
    Operation(
        "put", f"{_ONE}/vote", "vote", "Vote on a comment", comment_shapes.CastVote,
        refuses=(409, 429), body=comment_shapes.NewVote, extra=(_KEY,), security=_TOKEN_TAKEN,
    ),
    Operation(
        "delete", f"{_ONE}/vote", "withdrawVote", "Withdraw your vote", comment_shapes.CastVote,
        refuses=(409,), security=_TOKEN_NEEDED,
    ),
    Operation(
        "post", "/sites/{site}/session", "enterSite",
        "Sign in a reader with a token that the site has signed", own_data.ReaderSession,
        refuses=(401,), body=own_data.Assertion,
    ),
    Operation(
        "get", "/sites/{site}/sign-in", "offerEntry", "List the ways to sign in to a site",
        own_data.EntryOffer,
    ),
    Operation(
        "post", "/sites/{site}/sign-in", "askToEnter", "Send a mail with a link to a sign-in code",
        own_data.Pending, refuses=(409, 429), body=own_data.AskedEntry, status=202,
    ),
    Operation(
        "post", "/sites/{site}/sign-in/code", "enterByCode",
        "Sign in with the code that a mail linked to", own_data.ReaderSession,
        refuses=(401,), body=own_data.Code,
    ),
    Operation(
        "post", "/sites/{site}/sign-in/provider", "enterByProvider",
        "Sign in with the code that a provider's pop-up showed", own_data.ReaderSession,
        refuses=(401,), body=own_data.Voucher,
    ),
    Operation(
        "get", "/sites/{site}/author", "exportAuthor",
        "Export all data that is stored about the caller on a site", personal_data.Everything,
        security=_TOKEN_NEEDED,
    ),
    Operation(
        "delete", "/sites/{site}/author", "eraseAuthor",
        "Erase part of the data that is stored about the caller; repeat until done",
        own_data.Erased, refuses=(409,), security=_TOKEN_NEEDED,
    ),
    Operation(
        "post", f"{_ONE}/report", "reportComment", "Report a comment to the site's moderators",
        moderation_calls.Reported, refuses=(429,), body=moderation_calls.NewReport, status=202,
        security=_TOKEN_TAKEN,
    ),
    Operation(
        "post", "/sites/{site}/opinions", "giveOpinion",
        "Give a verdict on a comment, as the site's classifier", moderation_calls.TakenOpinion,
        refuses=(401, 409), body=moderation_calls.GivenOpinion, extra=_SIGNED,
    ),
    Operation(
        "get", "/sites/{site}/votes", "listOwnVotes", "List your own votes in a thread",
        own_data.OwnVotes, query=own_data.OwnVotesQuery, extra=_THREAD,
        security=_TOKEN_NEEDED,
    ),
    Operation(
        "get", "/sites/{site}/inbox", "listInbox", "List the unread replies to your comments",
        inbox_calls.Inbox, query=parameters.PageQuery, security=_TOKEN_NEEDED,
    ),
    Operation(
        "post", "/sites/{site}/inbox/read", "markRead", "Mark replies in your inbox as read",
        inbox_calls.RepliesRead, body=inbox_calls.ReadReplies, security=_TOKEN_NEEDED,
    ),
    Operation(
        "get", "/sites/{site}/held", "listOwnHeld",
        "List your own comments in a thread, including held ones", moderation_calls.OwnHeld,
        extra=_THREAD, security=_TOKEN_NEEDED,
    ),
    Operation(
        "get", _FOLLOWING, "showFollowing",
        "Tell whether you follow a thread without mail, and how many people follow it",
        follow_calls.FollowState, extra=_THREAD, security=_TOKEN_NEEDED,
    ),
    Operation(
        "put", _FOLLOWING, "follow", "Follow a thread without mail", follow_calls.FollowState,
        refuses=(409, 429), extra=_THREAD, security=_TOKEN_NEEDED,
    ),
    Operation(
        "put", f"{_FOLLOWING}/name", "showFollowerName",
        "Show the site's staff, under a name, that you follow a thread without mail",
        follow_calls.FollowState, refuses=(409,), body=follow_calls.FollowerName, extra=_THREAD,
        security=_TOKEN_NEEDED,
    ),
    Operation(
        "delete", _FOLLOWING, "unfollow", "Stop following a thread without mail",
        follow_calls.FollowState, extra=_THREAD, security=_TOKEN_NEEDED,
    ),
    Operation(
        "get", "/sites/{site}/followed", "listFollowed",
        "List the threads that you follow without mail", follow_calls.FollowedPage,
        query=parameters.PageQuery, security=_TOKEN_NEEDED,
    ),
    Operation(
        "get", "/sites/{site}/authors", "listAuthors", "List a site's authors, highest score first",
        comment_shapes.AuthorPage, query=comment_shapes.AuthorsQuery, extra=(KNOWN,), headers=_TAG,
    ),
    Operation(
        "post", "/sites/{site}/preview", "previewComment", "Render a text as it would be stored",
        comment_shapes.Preview, refuses=(429,), body=comment_shapes.NewBody,
    ),
    Operation(
        "post", "/sites/{site}/counts", "countComments",
        "Count the comments in several threads, and their followers", comment_shapes.Counts,
        body=comment_shapes.ThreadList,
    ),
    Operation(
        "get", "/openapi.json", "describe", "Get this document", None, extra=(KNOWN,), headers=_TAG,
    ),
)  # fmt: skip
