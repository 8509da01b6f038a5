"""Mail about comments: notices, questions and sign-in links, each a message to one address.

Owns what messages say; `mime` makes bytes of them.

Invariants:

1. People's words in names, titles and texts go through `plain_words`: nothing in them becomes a
   link, a header or an encoded word. HTML is escaped. There are no images.
2. The only links are those that the caller gives, to our own host or the site's own page.
3. A guest has no name that is reserved: names are checked again as they are sent.
4. A message goes to one plain address.
5. `Message-ID` is made of the event's id and the address, so that a message that is sent again,
   after a crash between sending and noting it, is one message in most mailboxes.
"""

import dataclasses
import email.utils
import enum
import hashlib
import html
import re
from collections.abc import Sequence
from datetime import datetime

from comments import errors
from comments.domain.text import cleaning, mail_addresses
from comments.events.mail import mime, plain_words

MAX_TEXT = 2_000  # characters of a comment that a message shows
NOBODY = "Somebody"
_URL = re.compile(r"https?://[!#-;=?-~]+")


class About(enum.StrEnum):
    """What a notice is about, as its subject says it."""

    COMMENT = "commented"
    REPLY = "replied to you"
    HELD = "wrote what waits for approval"


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """Word of a comment, for one address.

    `name`, `title` and `text` are people's words. `place` leads to the comment; `unsubscribe` takes
    a POST without further questions (RFC 8058), and shows a button to who follows it. There is none
    for a site's moderators, whom only an operator takes off; their `place` is where they decide.
    `about` is why this address is told. `is_account` says that the author has an account: its name
    was checked when it was given, and that of staff may be a reserved one.
    """

    event: str
    recipient: str
    site: str
    name: str
    title: str
    text: str
    place: str
    unsubscribe: str | None
    about: About = About.COMMENT
    is_account: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """Whether the owner of an address wants mail. `link` shows a page where he may say so.

    `things` are what he would be told of, in our own words: nothing that a stranger chose is said.
    """

    event: str
    recipient: str
    site: str
    things: Sequence[str]
    link: str


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A link with which the owner of an address signs in on a site."""

    event: str
    recipient: str
    site: str
    link: str


def message(notice: Notice, sender: str, *, now: datetime) -> mime.Message:
    """The mail of a notice, the same for the same moment.

    Raises:
        errors.BadInput: the recipient is not one plain address, or a link is no web address.
    """
    _check_link("place", notice.place)
    more = []
    if notice.unsubscribe is not None:
        _check_link("unsubscribe", notice.unsubscribe)
        more = [
            ("List-Unsubscribe", f"<{notice.unsubscribe}>"),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
        ]
    subject = _subject(notice)
    parts = _Parts(subject, _plain(notice, subject), _html(notice, subject))
    return _made(notice, sender, parts, more, now=now)


def question(asked: Question, sender: str, *, now: datetime) -> mime.Message:
    """The mail that asks the owner of an address.

    Raises:
        errors.BadInput: the recipient is not one plain address, or the link is no web address.
    """
    _check_link("link", asked.link)
    subject = f"Do you want mail about comments on {asked.site}?"
    opening = f"Somebody, perhaps you, asked {asked.site} to tell this address of:"
    closing = "The page asks you once more. If it was not you, do nothing: nothing will be sent."
    plain = "".join(f"- {thing}\n" for thing in asked.things)
    items = "".join(f"<li>{html.escape(thing)}</li>" for thing in asked.things)
    link = html.escape(asked.link)
    parts = _Parts(
        subject,
        f"{opening}\n\n{plain}\nIf you want that, open this page within two days:\n"
        f"{asked.link}\n\n{closing}\n",
        f"<!doctype html>\n<p>{html.escape(opening)}</p>\n<ul>{items}</ul>\n"
        f'<p><a href="{link}">I want that</a> (the link works for two days)</p>\n'
        f"<p>{closing}</p>\n",
    )
    return _made(asked, sender, parts, now=now)


def entry(asked: Entry, sender: str, *, now: datetime) -> mime.Message:
    """The mail with which somebody signs in.

    Raises:
        errors.BadInput: the recipient is not one plain address, or the link is no web address.
    """
    _check_link("link", asked.link)
    opening = f"Somebody, perhaps you, wants to comment on {asked.site} with this address."
    closing = (
        "It shows a code for the page you came from. If that was not you, do nothing, and give "
        "the code to nobody."
    )
    link = html.escape(asked.link)
    parts = _Parts(
        f"Sign in to comment on {asked.site}",
        f"{opening}\n\nIf that is you, open this page within half an hour:\n{asked.link}\n\n"
        f"{closing}\n",
        f"<!doctype html>\n<p>{html.escape(opening)}</p>\n"
        f'<p><a href="{link}">That is me</a> (the link works for half an hour)</p>\n'
        f"<p>{closing}</p>\n",
    )
    return _made(asked, sender, parts, now=now)


def is_link(url: str) -> bool:
    """Whether a message may lead there."""
    return _URL.fullmatch(url) is not None


@dataclasses.dataclass(frozen=True, slots=True)
class _Parts:
    """What a message says: its subject, its text, and the text as HTML."""

    subject: str
    plain: str
    rich: str


def _check_link(field: str, url: str) -> None:
    if not is_link(url):
        raise errors.BadInput(field, "is not a web address")


def _made(
    about: Notice | Question | Entry,
    sender: str,
    parts: _Parts,
    more: Sequence[tuple[str, str]] = (),
    *,
    now: datetime,
) -> mime.Message:
    recipient = mail_addresses.check(about.recipient)
    digest = hashlib.sha256(f"{about.event} {recipient}".encode()).hexdigest()[:32]
    headers = [
        ("From", mime.mailbox(about.site, sender)),
        ("To", recipient),
        ("Subject", mime.text(parts.subject)),
        ("Date", email.utils.format_datetime(now)),
        ("Message-ID", f"<{digest}@{sender.rpartition('@')[2]}>"),
        ("Auto-Submitted", "auto-generated"),
        ("X-Auto-Response-Suppress", "All"),
        *more,
    ]
    raw = mime.compose(headers, plain=parts.plain, rich=parts.rich, boundary=digest)
    return mime.Message(sender, recipient, raw)


def _subject(notice: Notice) -> str:
    about = plain_words.line(notice.title)
    return f"{_name(notice)} {notice.about}" + (f" on {about}" if about else "")


def _name(notice: Notice) -> str:
    """The author's name as it may be sent."""
    name = plain_words.line(notice.name)
    if notice.is_account:
        return name or NOBODY
    try:
        # Again: a name may be a reserved one only without what is left out of mail.
        return cleaning.clean_name(name)
    except errors.BadInput:
        return NOBODY


def _shown(notice: Notice) -> str:
    text = plain_words.words(notice.text).strip()
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} [...]"


def _plain(notice: Notice, subject: str) -> str:
    quoted = "\n".join(f"> {line}" for line in _shown(notice).split("\n"))
    return f"{subject}:\n\n{quoted}\n\n{_offer(notice)}: {notice.place}\n" + (
        f"\nNo more of these: {notice.unsubscribe}\n" if notice.unsubscribe else ""
    )


def _html(notice: Notice, subject: str) -> str:
    text = html.escape(_shown(notice)).replace("\n", "<br>\n")
    place, unsubscribe = html.escape(notice.place), html.escape(notice.unsubscribe or "")
    ending = f'<p><a href="{unsubscribe}">No more of these</a></p>\n' if unsubscribe else ""
    return (
        f"<!doctype html>\n<p>{html.escape(subject)}:</p>\n"
        f"<blockquote>{text}</blockquote>\n"
        f'<p><a href="{place}">{_offer(notice)}</a></p>\n{ending}'
    )


def _offer(notice: Notice) -> str:
    """What the link of a notice is for."""
    return "Approve it or refuse it" if notice.about is About.HELD else "Read it"
