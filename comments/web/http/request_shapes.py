"""What callers send: every query, form and body of the API as a typed value.

The same types decode requests and describe them in the OpenAPI document, so the two cannot
disagree. What is answered has its own (`response_shapes`).
"""

import enum
from typing import Annotated, Literal

import msgspec

from comments.domain import categories, classifier_verdicts
from comments.moderation import reports
from comments.posting import cast_vote, turnstile
from comments.sites import proof_policy
from comments.tree.counters import leaderboard
from comments.web.http.decode import field_errors

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_COUNTS = 100

# The lengths hold where a pattern alone does not: "$" also matches before a final line break.
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
Cursor = Annotated[str, msgspec.Meta(min_length=1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)]
Typed = Annotated[str, msgspec.Meta(max_length=1_000)]  # a line of one of our own forms
Categories = Annotated[list[str], msgspec.Meta(max_length=categories.MOST)]
TurnstileToken = Annotated[str, msgspec.Meta(max_length=turnstile.LONGEST_TOKEN)]
ALL = "all"
LimitOrAll = Limit | Literal["all"]


class Order(enum.StrEnum):
    """The orders a listing can be asked for."""

    THREAD = "thread"
    RECENT = "recent"
    BEST = "best"
    OLDEST = "oldest"
    NEWEST = "newest"


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a caller sends: a field we do not know is refused, not dropped."""


class ListQuery(_Request, frozen=True):
    """The query of a listing, apart from `thread` and `page`."""

    order: Order = Order.THREAD
    limit: LimitOrAll = DEFAULT_LIMIT
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET
    parent: Parent | msgspec.UnsetType = msgspec.UNSET
    around: CommentId | msgspec.UnsetType = msgspec.UNSET


class EmbedQuery(_Request, frozen=True):
    """The query of a thread's HTML, apart from `thread` and `page`."""

    order: Order = Order.THREAD
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET
    around: CommentId | msgspec.UnsetType = msgspec.UNSET
    below: CommentId | msgspec.UnsetType = msgspec.UNSET


class RepliesQuery(_Request, frozen=True):
    """The query of a subtree's listing."""

    limit: LimitOrAll = DEFAULT_LIMIT
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class NoQuery(_Request, frozen=True):
    """No query, apart from `thread` and `page` where a call takes them."""


class LinkQuery(_Request, frozen=True):
    """The query of a page that a link in mail leads to."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=8_000)]


class Slip(_Request, frozen=True):
    """The form of a page that a link in mail leads to: what its button posts (`form_tokens`)."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=16_000)]


class NoForm(_Request, frozen=True):
    """A form of a button alone."""


class SignIn(_Request, frozen=True):
    """Who somebody says he is."""

    login: Typed
    password: Typed
    code: Typed = ""


class Ticket(_Request, frozen=True):
    """The key of a one-time link."""

    token: Typed


class Accepted(_Request, frozen=True):
    """The key of an invitation, and who somebody is to be."""

    token: Typed = ""
    name: Typed = ""
    login: Typed = ""
    password: Typed = ""


class Renewed(_Request, frozen=True):
    """The key of a reset, the new password, and the code of an authenticator."""

    token: Typed = ""
    password: Typed = ""
    code: Typed = ""


class Confirmed(_Request, frozen=True):
    """The password of whoever is signed in, once more."""

    current: Typed


class NewPassword(Confirmed, frozen=True):
    """The password of whoever is signed in, and the next one."""

    password: Typed


class NewAuthenticator(Confirmed, frozen=True):
    """The secret that an authenticator was given, and the code it shows."""

    key: Typed
    code: Typed


class NewSubscription(_Request, frozen=True):
    """What somebody wants to be told of by mail: new comments of the thread, replies to his own."""

    email: Annotated[str, msgspec.Meta(min_length=3, max_length=254)]
    thread: bool = False
    replies: bool = False


class NewComment(_Request, frozen=True):
    """A comment to be posted. `parent` is the comment it answers; absent for a root.

    `title`, `url` and `categories` say what its page is; a thread shows those of its oldest
    approved comment.
    `proof` is a solved challenge, `turnstile` a token of Turnstile. `subject` stays empty: only a
    bot fills in what no reader sees.
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


class NewBody(_Request, frozen=True):
    """A text in Markdown: an edit, or a preview."""

    body: str


class Assertion(_Request, frozen=True):
    """What the site says of who its reader is: a token that it signed."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=4_000)]


class ChallengeQuery(_Request, frozen=True):
    """What a proof of work is for: a post, a first vote, an anonymous report, a sign-in mail."""

    purpose: proof_policy.Purpose = proof_policy.Purpose.POST


class NewReport(_Request, frozen=True):
    """Why a comment is reported to the site's moderators.

    `proof` is a solved challenge for the purpose `report`; callers with a token need none.
    """

    reason: reports.Reason = reports.Reason.OTHER
    proof: str = ""


class GivenOpinion(_Request, frozen=True):
    """What a site's own service says of what it was asked; `reason` is one line, for moderators."""

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    verdict: classifier_verdicts.Verdict
    reason: Annotated[str, msgspec.Meta(max_length=classifier_verdicts.LONGEST_REASON)] = ""


class AskedEntry(_Request, frozen=True):
    """A mail address to sign in with.

    `proof` is a solved challenge for the purpose `sign-in`, which is asked for now and then.
    """

    email: Annotated[str, msgspec.Meta(min_length=3, max_length=254)]
    proof: str = ""


class Code(_Request, frozen=True):
    """The key that asking gave, the code that the mail's link shows, and the name to go by."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    name: str


class Voucher(_Request, frozen=True):
    """What a page keeps and the code that its window showed; a name to go by, or nothing."""

    verifier: Annotated[str, msgspec.Meta(min_length=43, max_length=128)]
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    name: str = ""


class NewVote(_Request, frozen=True):
    """A vote: for a comment, or against it.

    `proof` is a solved challenge for the purpose `vote`; callers with a token need none.
    """

    value: Literal[1, -1]
    proof: str = ""


class OwnVotesQuery(_Request, frozen=True):
    """The query of one's own votes, apart from `thread` and `page`."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=cast_vote.MOST_OWN)] = cast_vote.MOST_OWN
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class AuthorsQuery(_Request, frozen=True):
    """The query of a site's authors."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=leaderboard.MAX_LIMIT)] = 20
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class ThreadList(_Request, frozen=True):
    """Threads by id, to be counted."""

    threads: Annotated[list[str], msgspec.Meta(max_length=MAX_COUNTS)]
