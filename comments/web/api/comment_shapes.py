"""The types of the requests and responses of `comment_calls`.

The same types decode requests, encode responses and describe both in the OpenAPI document, so the
document is always correct. `presentation.PublicComment` contains everything that is public about a
comment, but has no field for an author's id or e-mail address.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from comments.domain import categories, presentation
from comments.limits import proof_policy, turnstile
from comments.reading import thread_pages
from comments.tree.counters import leaderboard
from comments.web.http import page_members
from comments.web.http.decode import field_errors, parameters

MAX_COUNTS = 100

Parent = Annotated[
    str,
    msgspec.Meta(
        pattern="^([a-z2-7]{26}|root)$",
        max_length=26,
        extra={field_errors.CODE: "not-a-parent"},
    ),
]
# No thread has this many comments, and the page itself knows how many comments it has.
_MOST = 1_000_000_000
Offset = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
PageNumber = Annotated[int, msgspec.Meta(ge=1, le=_MOST)]
Categories = Annotated[list[str], msgspec.Meta(max_length=categories.MOST)]
TurnstileToken = Annotated[str, msgspec.Meta(max_length=turnstile.LONGEST_TOKEN)]
ThreadNames = Annotated[list[str], msgspec.Meta(max_length=MAX_COUNTS)]


class ListQuery(parameters.Request, frozen=True):
    """The parameters of a list of comments, apart from `thread` and `page`.

    Without `order`, lists with `parent`, `around` or `limit=all` use the order `thread`, the only
    order that they allow. Other lists use the site's default order.

    `around` and `slug` name a comment; the page that contains the comment is returned. `offset` is
    the number of comments before the page; `page` is the number of the page, counted from 1 in
    pages of `limit` comments.

    `canonical` is the address that the page declares as its canonical one, if no thread has it.
    """

    order: thread_pages.ListingOrder | msgspec.UnsetType = msgspec.UNSET
    limit: parameters.LimitOrAll = parameters.DEFAULT_LIMIT
    cursor: parameters.Cursor | msgspec.UnsetType = msgspec.UNSET
    parent: Parent | msgspec.UnsetType = msgspec.UNSET
    around: parameters.IdOrSlug | msgspec.UnsetType = msgspec.UNSET
    slug: parameters.Slug | msgspec.UnsetType = msgspec.UNSET
    page: PageNumber | msgspec.UnsetType = msgspec.UNSET
    offset: Offset | msgspec.UnsetType = msgspec.UNSET
    canonical: parameters.Address | msgspec.UnsetType = msgspec.UNSET


class RepliesQuery(parameters.Request, frozen=True):
    """The query for a list of all comments below a comment."""

    limit: parameters.LimitOrAll = parameters.DEFAULT_LIMIT
    cursor: parameters.Cursor | msgspec.UnsetType = msgspec.UNSET


class SlugQuery(parameters.Request, frozen=True):
    """The slug of a comment, apart from `thread` and `page`."""

    slug: parameters.Slug


class ChallengeQuery(parameters.Request, frozen=True):
    """The purpose of a proof of work: a post, first vote, anonymous report or sign-in mail."""

    purpose: proof_policy.ChallengePurpose = proof_policy.ChallengePurpose.POST


class NewComment(parameters.Request, frozen=True):
    """A new comment.

    `parent` is the id of the comment that the new comment answers; null for a root.

    `title`, `url` and `categories` describe the page that embeds the thread. The thread shows the
    values from its oldest approved comment. `proof` is a solved challenge, and `turnstile` is a
    Turnstile token. `subject` must be empty, because it is a honeypot that readers do not see.
    """

    name: str
    body: str
    parent: parameters.CommentId | None = None
    website: str = ""
    email: str = ""
    title: str = ""
    url: str = ""
    categories: Categories = msgspec.field(default_factory=list)
    proof: str = ""
    turnstile: TurnstileToken = ""
    subject: str = ""


class NewBody(parameters.Request, frozen=True):
    """A text in Markdown, for an edit or a preview."""

    body: str


class NewVote(parameters.Request, frozen=True):
    """An upvote (1) or downvote (-1).

    `proof` is a solved challenge for the purpose `vote`. Callers with a token need no proof.
    """

    value: Literal[1, -1]
    proof: str = ""


class NewSubscription(parameters.Request, frozen=True):
    """A request for mail about a thread's new comments, or about replies to the caller."""

    email: Annotated[str, msgspec.Meta(min_length=3, max_length=254)]
    thread: bool = False
    replies: bool = False


class AuthorsQuery(parameters.Request, frozen=True):
    """The query for a site's authors."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=leaderboard.MAX_LIMIT)] = 20
    cursor: parameters.Cursor | msgspec.UnsetType = msgspec.UNSET


class ThreadList(parameters.Request, frozen=True):
    """The threads whose comments are counted, named by their ids or by the URLs of their pages.

    With `followers`, the followers of each thread are also counted.
    """

    threads: ThreadNames = msgspec.field(default_factory=list)
    pages: ThreadNames = msgspec.field(default_factory=list)
    followers: bool = False


class CommentPage(msgspec.Struct, frozen=True):
    """A page of comments. Send `cursor` to get the next page; it is null on the last page.

    `total` is the number of listed comments in the whole thread; pending and rejected comments are
    not listed. `changed` is the time when a comment in the thread was last posted, edited or
    retracted; it is null if the thread is empty. `first` and `last` are the positions of this
    page's first and last comment in the thread, in this `order`, counted from 1. Both are null if
    the page has no comments or the positions are not known (see docs/api.md).

    A comment with the `status` `removed` keeps its place but has no text. If a comment has more
    `replies` than the page contains, get the others with `cursor` or with the comment's `replies`
    call.

    `pinned` contains the thread's pinned comments in reading order; only first pages have this
    field. Pinned comments also keep their place in the thread. Pages with `parent`, `around` or
    `slug` are not first pages.

    If the request has the parameter `around` or `slug`, the page's `around` is the id of the
    comment that the parameter names. This id differs from the parameter if the parameter is a slug,
    or an id that the comment had in another Flatthread installation.

    `order` is the order of this page. `thread` and `options` are at most a minute old.
    """

    comments: list[presentation.PublicComment]
    cursor: str | None
    first: int | None
    last: int | None
    total: int
    changed: datetime | None
    order: thread_pages.ListingOrder
    thread: page_members.PostingState
    options: page_members.PageOptions
    pinned: list[presentation.PublicComment] | msgspec.UnsetType = msgspec.UNSET
    around: str | msgspec.UnsetType = msgspec.UNSET


class PostedComment(msgspec.Struct, frozen=True):
    """A new comment, and the token with which its author can change it until `expires`.

    If the request is repeated after more than an hour from a different network, the response has no
    token and contains only public data.
    """

    comment: presentation.OwnComment
    token: str | msgspec.UnsetType = msgspec.UNSET
    expires: datetime | msgspec.UnsetType = msgspec.UNSET


class OneComment(msgspec.Struct, frozen=True):
    """A comment and its ancestors, root first."""

    comment: presentation.PublicComment
    ancestors: list[presentation.PublicComment]


class ChangedComment(msgspec.Struct, frozen=True):
    """A comment after a change."""

    comment: presentation.OwnComment


class CastVote(msgspec.Struct, frozen=True):
    """The caller's vote on a comment (0 means no vote), and the caller's token."""

    comment: str
    value: int
    token: str
    expires: datetime


class MailOffer(msgspec.Struct, frozen=True):
    """Whether this service sends mail."""

    mail: bool


class ConfirmationRequested(msgspec.Struct, frozen=True):
    """Confirms that a confirmation mail was requested.

    The response is the same if no mail is sent because the address has received too many, so it
    does not reveal which addresses are known.
    """

    status: Literal["asked"] = "asked"


class RankedAuthor(msgspec.Struct, frozen=True):
    """An author on a site, with the author's score and number of approved comments."""

    author: presentation.PublicAuthor
    score: int
    comments: int


class AuthorPage(msgspec.Struct, frozen=True):
    """Authors on a site, highest score first. Send `cursor` to get the next page."""

    authors: list[RankedAuthor]
    cursor: str | None


class Preview(msgspec.Struct, frozen=True):
    """The HTML that the service would store for a text."""

    html: str


class Counts(msgspec.Struct, frozen=True):
    """The number of listed comments in each thread, in the order of the request.

    The number is null for a name that cannot belong to a thread. If the request asks for them,
    `followers` contains the numbers of the threads' followers.
    """

    counts: list[int | None]
    followers: list[int | None] | msgspec.UnsetType = msgspec.UNSET
