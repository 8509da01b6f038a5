"""The types of the API's answers.

The same types encode answers and describe them in the OpenAPI document, so the document is always
correct. `presentation.PublicComment` contains everything that is public about a comment.
`presentation.PublicComment` has no field for an author's id or e-mail address.
"""

from datetime import datetime
from typing import Literal

import msgspec

from comments.accounts.oidc import providers as oidc_providers
from comments.domain import presentation, records, site_options
from comments.domain.moderation.reasons import HoldReason
from comments.moderation import thread_access
from comments.reading import thread_pages


class PostingState(msgspec.Struct, frozen=True):
    """Whether a thread accepts comments. A `read-only` thread accepts no edits either."""

    state: thread_access.ThreadAccess


class PageOptions(msgspec.Struct, frozen=True):
    """The options of the site, see docs/embedding.md.

    `live` is the number of seconds between two checks for new comments, 0 for none. `language` is
    empty for the language of the page with the comments. `inbox` tells whether authors have an
    inbox of unread replies. Three fields are not options of the site: `origins` are the origins
    whose pages may send comments, `mail` tells whether the service sends mail, which readers need
    to follow a thread, and `sign_in` whether readers can sign in by mail or through a provider.
    """

    votes: bool
    website: bool
    guests: bool
    order: site_options.DefaultOrder
    images: list[str]
    live: int
    theme: site_options.Theme
    language: str
    moderation: bool
    forms: bool
    inbox: bool
    origins: tuple[str, ...]
    mail: bool
    sign_in: bool


class CommentPage(msgspec.Struct, frozen=True):
    """A page of comments. Send `cursor` to get the next page; it is null on the last page.

    `total` is the number of listed comments in the whole thread; it excludes pending and rejected
    comments. `changed` is the time when a comment of the thread was last posted, edited or
    retracted; it is null in an empty thread. `first` and `last` are the positions of the first and
    the last comment of this page in the thread, in this `order`, counted from 1. They are null on a
    page without comments, and where positions are not known (see docs/api.md).

    A comment with the `status` `removed` keeps its place but has no text. If a comment has more
    `replies` than the page contains, get the others with `cursor` or with the comment's `replies`
    call.

    Only a first page has `pinned`, the thread's pinned comments in reading order. They also keep
    their place in the thread. Pages with `parent`, `around` or `slug` are not first pages.

    A page with the parameter `around` or `slug` has the id of that comment in `around`. It differs
    from the parameter if this is a slug, or the id that the comment had in another Flatthread.

    `order` is the order of this page. `thread` and `options` are at most a minute old.
    """

    comments: list[presentation.PublicComment]
    cursor: str | None
    first: int | None
    last: int | None
    total: int
    changed: datetime | None
    order: thread_pages.ListingOrder
    thread: PostingState
    options: PageOptions
    pinned: list[presentation.PublicComment] | msgspec.UnsetType = msgspec.UNSET
    around: str | msgspec.UnsetType = msgspec.UNSET


class PostedComment(msgspec.Struct, frozen=True):
    """A new comment, and the token that lets its author change it until `expires`.

    If the request is repeated from a different network after more than an hour, the answer has no
    token and contains only public data.
    """

    comment: presentation.OwnComment
    token: str | msgspec.UnsetType = msgspec.UNSET
    expires: datetime | msgspec.UnsetType = msgspec.UNSET


class ReaderSession(msgspec.Struct, frozen=True):
    """A reader's token, valid until `expires`, and the name that others see.

    `account` distinguishes the reader from other readers in the same browser. Clients must not use
    `account` for anything else.
    """

    token: str
    expires: datetime
    name: str
    account: str


class Pending(msgspec.Struct, frozen=True):
    """Confirms that a mail with a link to a code was requested.

    The answer looks the same if no mail is sent because the address has received too many. The
    reader can sign in with `key` and the code until `expires`.
    """

    key: str
    expires: datetime


class EntryOffer(msgspec.Struct, frozen=True):
    """The ways to sign in to a site: by mail, or with a provider in a pop-up at `url`."""

    mail: bool
    providers: list[oidc_providers.OfferedProvider]
    url: str


class OneComment(msgspec.Struct, frozen=True):
    """A comment and its ancestors, root first."""

    comment: presentation.PublicComment
    ancestors: list[presentation.PublicComment]


class ChangedComment(msgspec.Struct, frozen=True):
    """A comment after a change."""

    comment: presentation.OwnComment


class MailOffer(msgspec.Struct, frozen=True):
    """Whether this service sends mail."""

    mail: bool


class ConfirmationRequested(msgspec.Struct, frozen=True):
    """Confirms that a confirmation mail was requested.

    The answer is the same if no mail is sent because the address has received too many. The answer
    therefore does not reveal which addresses are known.
    """

    status: Literal["asked"] = "asked"


class CastVote(msgspec.Struct, frozen=True):
    """The caller's vote on a comment (0 for no vote), and the caller's token."""

    comment: str
    value: int
    token: str
    expires: datetime


class OwnVotes(msgspec.Struct, frozen=True):
    """The caller's votes in a thread, by comment id. Send `cursor` to get the next page.

    Votes are counted some seconds after they are cast. `uncounted` is what the `score` of a comment
    lacks until then: `score` plus this number is the sum of all votes. It contains comments with
    recent votes, first those with a vote of the caller, and is empty on later pages.
    """

    votes: dict[str, int]
    uncounted: dict[str, int]
    cursor: str | None


class InboxReply(msgspec.Struct, frozen=True):
    """An unread reply and its thread; `reply_to` in the comment is the caller's comment.

    `title` and `url` describe the thread; they are empty if they are not known. `link` leads to the
    reply: to the page with the thread if its URL is known, otherwise to the service's own page for
    the thread, relative to the service's address.
    """

    comment: presentation.PublicComment
    thread: str
    title: str
    url: str
    link: str


class Inbox(msgspec.Struct, frozen=True):
    """The caller's unread replies, newest first. Send `cursor` to get the next page.

    `unread` is the number of all unread replies, at most 200. Older unread replies are dropped.
    """

    unread: int
    replies: list[InboxReply]
    cursor: str | None


class RepliesRead(msgspec.Struct, frozen=True):
    """The number of replies that the call has marked as read."""

    read: int


class Reported(msgspec.Struct, frozen=True):
    """Confirms that a report was received. The answer does not depend on the report's effect."""

    status: Literal["reported"] = "reported"


class TakenOpinion(msgspec.Struct, frozen=True):
    """Confirms that a verdict was received. A repeated request gets the same answer."""

    status: Literal["taken"] = "taken"


class OwnHeld(msgspec.Struct, frozen=True):
    """The caller's own pending and approved comments in a thread, in reading order."""

    comments: list[presentation.OwnComment]


class ModeratorToken(msgspec.Struct, frozen=True):
    """A moderator's token for the comments of one site, valid until `expires`, and their name."""

    token: str
    expires: datetime
    name: str


class EndedModeration(msgspec.Struct, frozen=True):
    """Confirms that the token is no longer valid."""

    status: Literal["ended"] = "ended"


class ModeratedComment(msgspec.Struct, frozen=True):
    """A comment as moderators see it.

    `status` is the stored status. `rule` says what gave the comment its status, such as `policy`,
    `reports` or `rule:` with a rule's id; `reason` explains it in English. Both may be empty.
    `reasons` are the same explanation as codes with parameters, for translations; they are empty if
    a person or a classifier wrote `reason`.
    `sort_hash` is the comment's place in the thread: comments sort by it in reading order.
    """

    comment: presentation.PublicComment
    status: records.Status
    rule: str
    reason: str
    reasons: tuple[HoldReason, ...]
    sort_hash: str


class HeldComments(msgspec.Struct, frozen=True):
    """The pending comments of a thread, in reading order.

    `more` says that there are further pending comments, which only the admin console lists.
    """

    comments: list[ModeratedComment]
    more: bool


class BannedAuthor(msgspec.Struct, frozen=True):
    """Confirms a ban of a comment's author, or its end."""

    status: Literal["banned", "unbanned"]


class Erased(msgspec.Struct, frozen=True):
    """The numbers of erased comments and votes. Repeat the call until `done` is true."""

    comments: int
    votes: int
    done: bool


class RankedAuthor(msgspec.Struct, frozen=True):
    """An author on a site, with the score and the number of the author's approved comments."""

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

    The number is null for a name that cannot be a thread. `followers` contains the number of
    followers of each thread, if the request asks for it.
    """

    counts: list[int | None]
    followers: list[int | None] | msgspec.UnsetType = msgspec.UNSET


class FollowState(msgspec.Struct, frozen=True):
    """Whether the caller follows a thread, and the number of all its followers."""

    following: bool
    followers: int


class ShownThread(msgspec.Struct, frozen=True):
    """A thread that the caller follows. `title` and `url` may be empty."""

    thread: str
    title: str
    url: str
    since: datetime | None


class FollowedPage(msgspec.Struct, frozen=True):
    """The threads that the caller follows, by id. Send `cursor` to get the next page."""

    threads: list[ShownThread]
    cursor: str | None


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error (RFC 9457).

    `code` is stable and identifies the error; docs/errors.md lists all codes. `detail` describes
    the error in English. `field` names the wrong value. `params` contains the values in the
    sentence, for clients that translate errors by `code`.
    """

    title: str
    status: int
    code: str
    detail: str
    field: str = ""
    params: dict[str, str | int] = {}
