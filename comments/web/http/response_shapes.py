"""The bodies of the API's answers, as typed values.

The same types encode answers and describe them in the OpenAPI document, so the two cannot disagree.
`presentation.PublicComment` is everything that the public may know about a comment: it has no field
for an author's id or e-mail address.
"""

from datetime import datetime
from typing import Literal

import msgspec

from comments.accounts.oidc import providers as oidc_providers
from comments.domain import presentation


class CommentPage(msgspec.Struct, frozen=True):
    """A page of a listing; `cursor` continues it.

    `total` counts the listed comments of the whole thread. `changed` is when one of them was last
    posted, edited or retracted; null in an empty thread.

    A comment with the `status` `removed` keeps its place but has no text. If a comment has more
    `replies` than the page shows below it, the others follow behind `cursor` or in its own
    `replies` call. Pending and rejected comments are not counted.
    """

    comments: list[presentation.PublicComment]
    cursor: str | None
    total: int
    changed: datetime | None


class PostedComment(msgspec.Struct, frozen=True):
    """A new comment, and the token with which its author may change it until `expires`.

    A repeat from another network after more than an hour has no token and shows the comment as
    everybody sees it.
    """

    comment: presentation.PublicComment
    token: str | msgspec.UnsetType = msgspec.UNSET
    expires: datetime | msgspec.UnsetType = msgspec.UNSET


class ReaderSession(msgspec.Struct, frozen=True):
    """A reader's token, valid until `expires`, and the name that others see.

    `account` tells the reader from others in the same browser. It has no meaning elsewhere.
    """

    token: str
    expires: datetime
    name: str
    account: str


class Pending(msgspec.Struct, frozen=True):
    """Says that a mail with a link to a code was sent, unless the address got too many of them.

    The answer is the same for every address. `key` and the code together sign in until `expires`.
    """

    key: str
    expires: datetime


class EntryOffer(msgspec.Struct, frozen=True):
    """How readers may sign in to a site: by mail, or with these providers in a pop-up at `url`."""

    mail: bool
    providers: list[oidc_providers.OfferedProvider]
    url: str


class OneComment(msgspec.Struct, frozen=True):
    """A comment and its ancestors, root first."""

    comment: presentation.PublicComment
    ancestors: list[presentation.PublicComment]


class ChangedComment(msgspec.Struct, frozen=True):
    """A comment after a change."""

    comment: presentation.PublicComment


class MailOffer(msgspec.Struct, frozen=True):
    """Whether this service sends mail."""

    mail: bool


class ConfirmationRequested(msgspec.Struct, frozen=True):
    """Says that a confirmation mail was sent, unless the address got too many of them.

    The answer is the same for every address, so that nobody learns which addresses are known.
    """

    status: Literal["asked"] = "asked"


class CastVote(msgspec.Struct, frozen=True):
    """The caller's vote on a comment, 0 for none, and the caller's token."""

    comment: str
    value: int
    token: str
    expires: datetime


class OwnVotes(msgspec.Struct, frozen=True):
    """The caller's votes on comments of a thread, by comment; `cursor` continues them."""

    votes: dict[str, int]
    cursor: str | None


class Reported(msgspec.Struct, frozen=True):
    """Says that a report was received. The answer does not depend on its effect."""

    status: Literal["reported"] = "reported"


class TakenOpinion(msgspec.Struct, frozen=True):
    """Says that an opinion was received. A repeat gets the same answer."""

    status: Literal["taken"] = "taken"


class OwnHeld(msgspec.Struct, frozen=True):
    """The caller's own comments of a thread, pending and approved, in reading order."""

    comments: list[presentation.PublicComment]


class Erased(msgspec.Struct, frozen=True):
    """How many comments and votes were erased. Repeat the call until `done`."""

    comments: int
    votes: int
    done: bool


class RankedAuthor(msgspec.Struct, frozen=True):
    """An author of a site: the score and the number of their approved comments."""

    author: presentation.PublicAuthor
    score: int
    comments: int


class AuthorPage(msgspec.Struct, frozen=True):
    """Authors of a site, highest score first; `cursor` continues them."""

    authors: list[RankedAuthor]
    cursor: str | None


class Preview(msgspec.Struct, frozen=True):
    """The HTML that a text would be stored as."""

    html: str


class Counts(msgspec.Struct, frozen=True):
    """The number of listed comments of each thread, in the order of the request."""

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
