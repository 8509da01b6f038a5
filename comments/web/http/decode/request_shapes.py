"""The types of request queries, forms and bodies.

The same types decode requests and describe them in the OpenAPI document, so the document is always
correct. The types of answers are in `response_shapes`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from comments import errors
from comments.domain import categories
from comments.domain.moderation import classifier_verdicts
from comments.limits import proof_policy, turnstile
from comments.moderation import reports
from comments.notifications import inbox
from comments.posting import cast_vote
from comments.reading import thread_pages
from comments.tree.counters import leaderboard
from comments.web.http.decode import field_errors

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_COUNTS = 100

# The length is checked separately, because "$" also matches before a final line break.
CommentId = Annotated[
    str,
    msgspec.Meta(
        pattern="^[a-z2-7]{26}$",
        min_length=26,
        max_length=26,
        extra={field_errors.CODE: "not-a-comment-id"},
    ),
]
Parent = Annotated[
    str,
    msgspec.Meta(
        pattern="^([a-z2-7]{26}|root)$",
        max_length=26,
        extra={field_errors.CODE: "not-a-parent"},
    ),
]
_SLUG = "[1-9][0-9]{0,18}(-[1-9][0-9]{0,18})*"
_LONGEST_SLUG = 500
Slug = Annotated[
    str,
    msgspec.Meta(
        pattern=f"^{_SLUG}$", max_length=_LONGEST_SLUG, extra={field_errors.CODE: "not-a-slug"}
    ),
]
IdOrSlug = Annotated[
    str,
    msgspec.Meta(
        pattern=f"^([a-z2-7]{{26}}|{_SLUG})$",
        max_length=_LONGEST_SLUG,
        extra={field_errors.CODE: "not-an-id-or-slug"},
    ),
]
# No thread has this many comments; the page itself knows how many there are.
_MOST = 1_000_000_000
Offset = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
PageNumber = Annotated[int, msgspec.Meta(ge=1, le=_MOST)]
Cursor = Annotated[str, msgspec.Meta(min_length=1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)]
Typed = Annotated[str, msgspec.Meta(max_length=1_000)]  # A text field in the service's own forms.
Categories = Annotated[list[str], msgspec.Meta(max_length=categories.MOST)]
TurnstileToken = Annotated[str, msgspec.Meta(max_length=turnstile.LONGEST_TOKEN)]
ALL = "all"
LimitOrAll = Limit | Literal["all"]


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query, form or body. Unknown fields are errors."""


def refuse_together(query: msgspec.Struct, excluded: Mapping[str, Sequence[str]]) -> None:
    """Raise errors.BadInput if a query has a parameter with one that `excluded` forbids beside it.

    The order of the thread is the default, so to name it is not to choose an order.
    """
    given = {
        name
        for name in query.__struct_fields__
        if getattr(query, name) not in {msgspec.UNSET, thread_pages.ListingOrder.THREAD}
    }
    for name, others in excluded.items():
        for other in others:
            if name in given and other in given:
                raise errors.BadInput(other, "conflicting-fields", other=name)


class ListQuery(_Request, frozen=True):
    """The parameters of a list of comments, apart from `thread` and `page`.

    Without `order`, lists with `parent`, `around` or `limit=all` use the order `thread`, because it
    is the only order that they allow. Other lists use the site's default order.

    `around` and `slug` name a comment, whose page is returned. `offset` is the number of comments
    before the page, and `page` is the number of a page with `limit` comments, from 1.
    """

    order: thread_pages.ListingOrder | msgspec.UnsetType = msgspec.UNSET
    limit: LimitOrAll = DEFAULT_LIMIT
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET
    parent: Parent | msgspec.UnsetType = msgspec.UNSET
    around: IdOrSlug | msgspec.UnsetType = msgspec.UNSET
    slug: Slug | msgspec.UnsetType = msgspec.UNSET
    page: PageNumber | msgspec.UnsetType = msgspec.UNSET
    offset: Offset | msgspec.UnsetType = msgspec.UNSET


class FeedQuery(_Request, frozen=True):
    """The parameters of a feed, apart from `thread` and `page`.

    `lang` is the language of the texts other than the comments (`page_language`).
    """

    lang: str | msgspec.UnsetType = msgspec.UNSET


class EmbedQuery(FeedQuery, frozen=True):
    """The parameters of a thread as HTML, apart from `thread` and `page`.

    `order`, `around` and `slug` have the same meaning as in `ListQuery`. `reply` shows the page
    around a comment, with a form to answer it. `title` and `url` describe the page with the thread,
    as in `NewComment`; the form sends them with a comment.
    """

    order: thread_pages.ListingOrder | msgspec.UnsetType = msgspec.UNSET
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET
    around: IdOrSlug | msgspec.UnsetType = msgspec.UNSET
    slug: Slug | msgspec.UnsetType = msgspec.UNSET
    below: CommentId | msgspec.UnsetType = msgspec.UNSET
    reply: CommentId | msgspec.UnsetType = msgspec.UNSET
    title: Typed = ""
    url: str = ""


class RepliesQuery(_Request, frozen=True):
    """The query for a list of everything below a comment."""

    limit: LimitOrAll = DEFAULT_LIMIT
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class SlugQuery(_Request, frozen=True):
    """The slug of a comment, apart from `thread` and `page`."""

    slug: Slug


class NoQuery(_Request, frozen=True):
    """No parameters, apart from `thread` and `page` if the call requires them."""


class WindowQuery(_Request, frozen=True):
    """The origin of the page that opened a window, and the challenge of the page's verifier."""

    origin: Typed
    challenge: Typed


class WindowProvider(WindowQuery, frozen=True):
    """The same values, and the name of the provider that the person chose in the window."""

    provider: Typed


class LinkQuery(_Request, frozen=True):
    """The query in a link from a mail."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=8_000)]


class LinkForm(_Request, frozen=True):
    """The form on a page that a mail links to (`form_tokens`)."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=16_000)]


class ConfirmationForm(LinkForm, frozen=True):
    """The same, and whether the owner of the site may see the address (a checkbox)."""

    share: Literal["", "on"] = ""


class NoForm(_Request, frozen=True):
    """A form that has a button and no fields."""


class SignIn(_Request, frozen=True):
    """A sign-in with a password, and an authenticator's code if the account requires one."""

    login: Typed
    password: Typed
    code: Typed = ""


class OneTimeLinkForm(_Request, frozen=True):
    """The token of a one-time link."""

    token: Typed


class Accepted(_Request, frozen=True):
    """The token of an invitation, and the new account's name and credentials."""

    token: Typed = ""
    name: Typed = ""
    login: Typed = ""
    password: Typed = ""


class PasswordResetForm(_Request, frozen=True):
    """The token of a reset link, the new password, and an authenticator's code."""

    token: Typed = ""
    password: Typed = ""
    code: Typed = ""


class Confirmed(_Request, frozen=True):
    """The current password, which a signed-in user must enter again to confirm a change."""

    current: Typed


class NewPassword(Confirmed, frozen=True):
    """The current and the new password."""

    password: Typed


class NewAuthenticator(Confirmed, frozen=True):
    """The secret for a new authenticator, and the code that the authenticator shows."""

    key: Typed
    code: Typed


class EndedSession(_Request, frozen=True):
    """The id of a moderation session to end."""

    session: Annotated[str, msgspec.Meta(pattern="^[a-z2-7]{26}$", max_length=26)]


class ModerationCode(_Request, frozen=True):
    """The verifier of a page, and the code from the window that granted a moderation session."""

    verifier: Annotated[str, msgspec.Meta(min_length=43, max_length=128)]
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]


class NewDecision(_Request, frozen=True):
    """A moderator's decision about a comment, with a reason for other moderators."""

    verb: Literal["approve", "reject", "spam", "hide", "restore", "pin", "unpin"]
    reason: str = ""


class NewBan(_Request, frozen=True):
    """A ban of a comment's author, for a number of days or, with null, permanently."""

    days: Annotated[int, msgspec.Meta(ge=1, le=3650)] | None = None
    reason: str = ""


class NewSubscription(_Request, frozen=True):
    """A request for mail about new comments in a thread or replies to the caller's comments."""

    email: Annotated[str, msgspec.Meta(min_length=3, max_length=254)]
    thread: bool = False
    replies: bool = False


class NewComment(_Request, frozen=True):
    """A new comment. `parent` is the id of the comment that it answers, or null for a root.

    `title`, `url` and `categories` describe the page with the thread; a thread shows the values
    from its oldest approved comment. `proof` is a solved challenge, and `turnstile` is a Turnstile
    token. `subject` must be empty: it is a honeypot that readers do not see.
    """

    name: str
    body: str
    parent: CommentId | None = None
    website: str = ""
    email: str = ""
    title: str = ""
    url: str = ""
    categories: Categories = []
    proof: str = ""
    turnstile: TurnstileToken = ""
    subject: str = ""


class PlainComment(_Request, frozen=True):
    """A new comment from a form without JavaScript.

    `key` comes from the page with the form. `parent`, `title`, `url` and `subject` are as in
    `NewComment`.
    """

    name: str
    body: str
    key: Annotated[str, msgspec.Meta(min_length=16, max_length=64)]
    parent: CommentId | msgspec.UnsetType = msgspec.UNSET
    website: str = ""
    title: str = ""
    url: str = ""
    subject: str = ""


class NewBody(_Request, frozen=True):
    """A text in Markdown, for an edit or a preview."""

    body: str


class Assertion(_Request, frozen=True):
    """A token, signed by the site, that identifies the site's reader."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=4_000)]


class ChallengeQuery(_Request, frozen=True):
    """The purpose of a proof of work: a post, first vote, anonymous report or sign-in mail."""

    purpose: proof_policy.ChallengePurpose = proof_policy.ChallengePurpose.POST


class NewReport(_Request, frozen=True):
    """The reason for reporting a comment to the site's moderators.

    `proof` is a solved challenge for the purpose `report`. Callers with a token need no proof.
    """

    reason: reports.Reason = reports.Reason.OTHER
    proof: str = ""


class GivenOpinion(_Request, frozen=True):
    """The verdict from a site's own classifier. `reason` is one line for moderators."""

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    verdict: classifier_verdicts.Verdict
    reason: Annotated[str, msgspec.Meta(max_length=classifier_verdicts.LONGEST_REASON)] = ""


class AskedEntry(_Request, frozen=True):
    """A mail address to sign in with.

    `proof` is a solved challenge for the purpose `sign-in`. The service requires the proof only
    under load, when many sign-in mails are requested.
    """

    email: Annotated[str, msgspec.Meta(min_length=3, max_length=254)]
    proof: str = ""


class Code(_Request, frozen=True):
    """A sign-in by mail: the key from the request, the code from the link, and a display name."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    name: str


class Voucher(_Request, frozen=True):
    """A sign-in with a pop-up: the verifier, the pop-up's code, and optionally a display name."""

    verifier: Annotated[str, msgspec.Meta(min_length=43, max_length=128)]
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    name: str = ""


class NewVote(_Request, frozen=True):
    """An upvote (1) or downvote (-1).

    `proof` is a solved challenge for the purpose `vote`. Callers with a token need no proof.
    """

    value: Literal[1, -1]
    proof: str = ""


class OwnVotesQuery(_Request, frozen=True):
    """The parameters of a list of the caller's own votes, apart from `thread` and `page`."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=cast_vote.MOST_OWN)] = cast_vote.MOST_OWN
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class PageQuery(_Request, frozen=True):
    """The page of a list of the caller: threads that they follow, or unread replies."""

    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class ReadReplies(_Request, frozen=True):
    """The replies that the caller has read: some comments, or a comment and all older ones.

    Without a field, the caller has read all replies.
    """

    ids: Annotated[list[CommentId], msgspec.Meta(max_length=inbox.MOST)] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    until: CommentId | msgspec.UnsetType = msgspec.UNSET


class AuthorsQuery(_Request, frozen=True):
    """The query for a site's authors."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=leaderboard.MAX_LIMIT)] = 20
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class ThreadList(_Request, frozen=True):
    """The threads whose comments the call counts, by their ids or the URLs of their pages.

    With `followers`, the call also counts the followers of each thread.
    """

    threads: Annotated[list[str], msgspec.Meta(max_length=MAX_COUNTS)] = []
    pages: Annotated[list[str], msgspec.Meta(max_length=MAX_COUNTS)] = []
    followers: bool = False
