"""What goes over the wire: every request and answer of the API as a typed value.

The same types decode requests, encode answers and describe both in the OpenAPI document, so the
three cannot disagree. What may be said of a comment in public is exactly `Comment`: an author's
id and e-mail have no field here.
"""

import enum
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from comments import authors, categories, opinions, public, reports, turnstile, voting
from comments.accounts import providers as known
from comments.web import refusals

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
        extra={refusals.FORM: "is not the id of a comment"},
    ),
]
Parent = Annotated[
    str,
    msgspec.Meta(
        pattern="^([a-z2-7]{26}|root)$",
        max_length=26,
        extra={refusals.FORM: "is neither the id of a comment nor root"},
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
    """The key of a reset, and the new password."""

    token: Typed = ""
    password: Typed = ""


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

    `title`, `url` and `categories` say what its page is, and count with the first comment only.
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


class NewReport(_Request, frozen=True):
    """Why a comment is reported to the site's moderators."""

    reason: reports.Reason = reports.Reason.OTHER


class GivenOpinion(_Request, frozen=True):
    """What a site's own service says of what it was asked; `reason` is one line, for moderators."""

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    verdict: opinions.Verdict
    reason: Annotated[str, msgspec.Meta(max_length=opinions.LONGEST_REASON)] = ""


class AskedEntry(_Request, frozen=True):
    """A mail address to sign in with."""

    email: Annotated[str, msgspec.Meta(min_length=3, max_length=254)]


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
    """A vote: for a comment, or against it."""

    value: Literal[1, -1]


class OwnVotesQuery(_Request, frozen=True):
    """The query of one's own votes, apart from `thread` and `page`."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=voting.MOST_OWN)] = voting.MOST_OWN
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class AuthorsQuery(_Request, frozen=True):
    """The query of a site's authors."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=authors.MAX_LIMIT)] = 20
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class ThreadList(_Request, frozen=True):
    """Threads by id, to be counted."""

    threads: Annotated[list[str], msgspec.Meta(max_length=MAX_COUNTS)]


class CommentPage(msgspec.Struct, frozen=True):
    """A run of a listing; `cursor` continues it.

    `total` counts the listed comments of the whole thread. `changed` is when one of them was last
    posted, edited or retracted; null where nobody wrote yet.

    What is held back shows in place: a comment whose `status` is `removed` gives its place only,
    one with more `replies` than stand below it here goes on behind the `cursor` or under its own
    `replies` call. What waits for a moderator or was refused is in no number.
    """

    comments: list[public.Comment]
    cursor: str | None
    total: int
    changed: datetime | None


class PostedComment(msgspec.Struct, frozen=True):
    """A comment just posted, and the token with which its guest may change it until `expires`."""

    comment: public.Comment
    token: str
    expires: datetime


class Session(msgspec.Struct, frozen=True):
    """The token that somebody is known by until `expires`, and the name that others see.

    `account` tells him from others in the same browser, and means nothing to anybody else.
    """

    token: str
    expires: datetime
    name: str
    account: str


class Pending(msgspec.Struct, frozen=True):
    """That a mail was sent with a link to a code, unless the address had too many of them.

    The same for every address. `key` and the code sign in together, until `expires`.
    """

    key: str
    expires: datetime


class EntryOffer(msgspec.Struct, frozen=True):
    """How readers of a site may sign in: by mail, or in a window at `url` by these providers."""

    mail: bool
    providers: list[known.OfferedProvider]
    url: str


class OneComment(msgspec.Struct, frozen=True):
    """A comment, and those it stands below, root first."""

    comment: public.Comment
    ancestors: list[public.Comment]


class ChangedComment(msgspec.Struct, frozen=True):
    """A comment after a change."""

    comment: public.Comment


class MailOffer(msgspec.Struct, frozen=True):
    """Whether this service sends mail, so that it can be asked for."""

    mail: bool


class Asked(msgspec.Struct, frozen=True):
    """That a mail was sent which asks for confirmation, unless the address had too many of them.

    The same for every address: whether it is known here is nobody's business.
    """

    status: Literal["asked"] = "asked"


class CastVote(msgspec.Struct, frozen=True):
    """How the caller votes on a comment now, 0 for not at all, and the token he is known by."""

    comment: str
    value: int
    token: str
    expires: datetime


class OwnVotes(msgspec.Struct, frozen=True):
    """How the caller votes on comments of a thread, by comment; `cursor` continues them."""

    votes: dict[str, int]
    cursor: str | None


class Reported(msgspec.Struct, frozen=True):
    """That a report was taken; the same whatever comes of it."""

    status: Literal["reported"] = "reported"


class TakenOpinion(msgspec.Struct, frozen=True):
    """That an opinion was taken; the same for one that was known already."""

    status: Literal["taken"] = "taken"


class OwnHeld(msgspec.Struct, frozen=True):
    """The caller's comments of a thread that readers do not see, in reading order."""

    comments: list[public.Comment]


class Erased(msgspec.Struct, frozen=True):
    """How many comments and votes were erased. Ask again until `done`."""

    comments: int
    votes: int
    done: bool


class RankedAuthor(msgspec.Struct, frozen=True):
    """An author of a site: the score of his approved comments, and how many there are."""

    author: public.Author
    score: int
    comments: int


class AuthorPage(msgspec.Struct, frozen=True):
    """Authors of a site, best first; `cursor` continues them."""

    authors: list[RankedAuthor]
    cursor: str | None


class Preview(msgspec.Struct, frozen=True):
    """A text as it would be stored."""

    html: str


class Counts(msgspec.Struct, frozen=True):
    """Listed comments per thread, in the order asked."""

    counts: list[int]


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error (RFC 9457). `code` is stable; `field` names the value that was refused."""

    title: str
    status: int
    code: str
    detail: str
    field: str = ""
