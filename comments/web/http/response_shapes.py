"""What callers are answered: every body of an answer of the API as a typed value.

The same types encode answers and describe them in the OpenAPI document, so the two cannot disagree.
What may be said of a comment in public is exactly `presentation.Comment`: an author's id and e-mail
have no field here.
"""

from datetime import datetime
from typing import Literal

import msgspec

from comments.accounts.oidc import providers as oidc_providers
from comments.domain import presentation


class CommentPage(msgspec.Struct, frozen=True):
    """A run of a listing; `cursor` continues it.

    `total` counts the listed comments of the whole thread. `changed` is when one of them was last
    posted, edited or retracted; null where nobody wrote yet.

    What is held back shows in place: a comment whose `status` is `removed` gives its place only,
    one with more `replies` than stand below it here goes on behind the `cursor` or under its own
    `replies` call. What waits for a moderator or was refused is in no number.
    """

    comments: list[presentation.Comment]
    cursor: str | None
    total: int
    changed: datetime | None


class PostedComment(msgspec.Struct, frozen=True):
    """A comment just posted, and the token with which its guest may change it until `expires`.

    Without a token for a repeat that comes later than an hour from another network: it then shows
    the comment as everybody sees it.
    """

    comment: presentation.Comment
    token: str | msgspec.UnsetType = msgspec.UNSET
    expires: datetime | msgspec.UnsetType = msgspec.UNSET


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
    providers: list[oidc_providers.OfferedProvider]
    url: str


class OneComment(msgspec.Struct, frozen=True):
    """A comment, and those it stands below, root first."""

    comment: presentation.Comment
    ancestors: list[presentation.Comment]


class ChangedComment(msgspec.Struct, frozen=True):
    """A comment after a change."""

    comment: presentation.Comment


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

    comments: list[presentation.Comment]


class Erased(msgspec.Struct, frozen=True):
    """How many comments and votes were erased. Ask again until `done`."""

    comments: int
    votes: int
    done: bool


class RankedAuthor(msgspec.Struct, frozen=True):
    """An author of a site: the score of his approved comments, and how many there are."""

    author: presentation.Author
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
    """An error (RFC 9457).

    `code` is stable and says what is wrong; docs/errors.md lists all codes. `detail` is a sentence
    in English. `field` names the value that was refused. `params` are the values of the sentence,
    for clients that translate it by `code`.
    """

    title: str
    status: int
    code: str
    detail: str
    field: str = ""
    params: dict[str, str | int] = {}
