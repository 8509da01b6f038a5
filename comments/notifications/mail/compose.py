"""Compose notices, confirmation requests, links, account notices and tests, each for one address.

`mime` converts the messages to bytes, and the catalogue contains their sentences.

`plain_words` cleans the names, titles and texts that people wrote. Names are checked again when
mail is composed, so no guest appears under a reserved name. The only links are those that the
caller passes; they lead to this service's own host or to the site's own page. Messages contain no
images.

`Message-ID` is a digest of the event's id and the address. If a crash makes the service send a
message twice, most mail programs show it once. All notices about one thread refer to one id in
`References` and `In-Reply-To`, so mail programs group them. No mail has this id, and the id does
not depend on earlier mails to the recipient.
"""

import dataclasses
import email.utils
import enum
import hashlib
import html
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from comments import errors
from comments.domain.languages import catalogue, formats
from comments.domain.text import cleaning
from comments.domain.text.addresses import mail_addresses
from comments.notifications.mail import mime, plain_words

t = catalogue.ENGLISH.text

MAX_TEXT = 2_000  # Maximum number of a comment's characters that a message shows.
_ACTORS = {"", "operator"}  # The actors of changes that are no accounts
_URL = re.compile(r"https?://[!#-;=?-~]+")


class Addressed(Protocol):
    """What every message has: the id of its event, its recipient, and the name of its sender."""

    @property
    def event(self) -> str: ...
    @property
    def recipient(self) -> str: ...
    @property
    def site_name(self) -> str: ...


class MailReason(enum.Enum):
    """The reasons for sending a notice."""

    COMMENT = enum.auto()
    REPLY = enum.auto()
    HELD = enum.auto()


# Each pair contains the subject with the thread's title and the subject without a title.
_SUBJECTS = {
    MailReason.COMMENT: ("comment-mail.comment-subject", "comment-mail.comment-subject-untitled"),
    MailReason.REPLY: ("comment-mail.reply-subject", "comment-mail.reply-subject-untitled"),
    MailReason.HELD: ("comment-mail.held-subject", "comment-mail.held-subject-untitled"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """A notification about a comment, for one address.

    `thread` is the thread's id. `name`, `title` and `text` contain text that people wrote. `place`
    links to the comment or, for moderators, to the page on which they decide about it.
    `unsubscribe` is a URL: a POST unsubscribes without confirmation (RFC 8058), and a GET shows a
    page with a button; None leaves the link out. `about` says why this address receives the notice.
    `is_account` says that the author has an account. The name of an account is not checked again,
    because it was checked when it was chosen, and staff may use reserved names.
    """

    event: str
    recipient: str
    site: str
    site_name: str
    thread: str
    name: str
    title: str
    text: str
    place: str
    unsubscribe: str | None
    about: MailReason = MailReason.COMMENT
    is_account: bool = False
    language: str = "en"


@dataclasses.dataclass(frozen=True, slots=True)
class LinkMail:
    """A message with a link for the owner of an address.

    `about` says what the link is for: to confirm a subscription or the new address of an account,
    to sign in to a site, or to accept an invitation. `site_name` is the site's name, or the
    service's for accounts and invitations. `things` describes, in the service's own words, what the
    subscription is about. The message contains no text that a stranger wrote.
    """

    event: str
    recipient: str
    site_name: str
    link: str
    about: Literal["confirm", "sign-in", "invitation", "address"]
    language: str
    things: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class TestMail:
    """A message that shows an owner that mail arrives. `site_name` is the host of the service."""

    event: str
    recipient: str
    site_name: str


@dataclasses.dataclass(frozen=True, slots=True)
class AccountNotice:
    """A message about a change to the account with the display name `name`.

    `change` is a `security_log.SecurityEvent`, and `by` the actor of its entry. `link` leads to the
    account's page. The message contains no secret.
    """

    event: str
    recipient: str
    site_name: str
    name: str
    change: str
    by: str
    at: datetime
    link: str
    language: str


def message(notice: Notice, sender: str, *, now: datetime) -> mime.MailMessage:
    """Return the mail for a notice. The result depends only on the arguments.

    Raises:
        errors.BadInput: the recipient is not one plain address, or a link is not a web address.
    """
    check_link("place", notice.place)
    thread = _message_id(_digest(f"thread {notice.site} {notice.thread}"), sender)
    more = [("In-Reply-To", thread), ("References", thread)]
    words = catalogue.of_or_english(notice.language)
    name = shown_name(notice.name, words, is_account=notice.is_account)
    title = plain_words.line(notice.title)
    offer = words.text(
        "comment-mail.decide" if notice.about is MailReason.HELD else "comment-mail.view"
    )
    links = [(offer, notice.place)]
    if notice.unsubscribe is not None:
        more += unsubscribe_headers(notice.unsubscribe)
        links.append((words.text("comment-mail.unsubscribe"), notice.unsubscribe))
    opening = words.text("comment-mail.wrote", name=name)
    quoted = quote(excerpt(notice.text))
    subject = words.text(_SUBJECTS[notice.about][0 if title else 1], name=name, title=title)
    parts = parts_of(words, subject, [(opening, paragraph(opening)), quoted], links)
    return assemble(notice, sender, parts, more, now=now)


def link_message(asked: LinkMail, sender: str, *, now: datetime) -> mime.MailMessage:
    """Return the mail that contains a link.

    Raises:
        errors.BadInput: the recipient is not one plain address, or the link is not a web address.
    """
    check_link("link", asked.link)
    words = catalogue.of_or_english(asked.language)
    subject, opening, closing, instruction, button = (
        words.text(f"mail.{asked.about}-{part}", site=asked.site_name)
        for part in ("subject", "opening", "closing", "instruction", "button")
    )
    items = "".join(f"<li>{html.escape(thing)}</li>" for thing in asked.things)
    things = [("\n".join(f"- {thing}" for thing in asked.things), f"<ul>{items}</ul>")]
    first, *rest = [(line, paragraph(line)) for line in (opening, closing, instruction)]
    sections = [first, *(things if asked.things else []), *rest]
    parts = parts_of(words, subject, sections, [(button, asked.link)])
    return assemble(asked, sender, parts, now=now)


def test_message(asked: TestMail, sender: str, *, now: datetime) -> mime.MailMessage:
    """Return the mail that an owner sends as a test.

    Raises:
        errors.BadInput: the recipient is not one plain address.
    """
    said = t("mail.test-body", site=asked.site_name)
    subject = t("mail.test-subject", site=asked.site_name)
    parts = Parts(subject, f"{said}\n", f"<!doctype html>\n<p>{html.escape(said)}</p>\n")
    return assemble(asked, sender, parts, now=now)


def account_notice(notice: AccountNotice, sender: str, *, now: datetime) -> mime.MailMessage:
    """Return the mail that tells an account's owner about a change, in their language.

    Raises:
        errors.BadInput: the recipient is not one plain address, or the link is not a web address.
    """
    check_link("link", notice.link)
    words = catalogue.of_or_english(notice.language)
    text = words.text
    change = text(f"account-mail.change-{notice.change}")
    actor = notice.by if notice.by in _ACTORS else "other"
    facts = [
        text("account-mail.account", name=plain_words.line(notice.name)),
        text("account-mail.time", moment=formats.moment(notice.at, words.language)),
        text(f"account-mail.by-{actor or 'self'}"),
    ]
    closing = [text("account-mail.expected"), text("account-mail.unexpected")]
    sections = [
        (change, paragraph(change)),
        ("\n".join(facts), "\n".join(map(paragraph, facts))),
        *((line, paragraph(line)) for line in closing),
    ]
    subject = text("account-mail.subject", change=change, site=notice.site_name)
    parts = parts_of(words, subject, sections, [(text("account-mail.button"), notice.link)])
    return assemble(notice, sender, parts, now=now)


def is_link(url: str) -> bool:
    """Return whether a message may link to a URL."""
    return _URL.fullmatch(url) is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """A message's subject and its text, as plain text and as HTML."""

    subject: str
    plain: str
    rich: str


def parts_of(
    words: catalogue.Catalogue,
    subject: str,
    sections: Sequence[tuple[str, str]],
    links: Sequence[tuple[str, str]],
) -> Parts:
    """Return the parts of a message in the language of `words`.

    `sections` contains each section as plain text and as HTML; `links` contains labels and URLs.
    """
    plain = [text for text, _ in sections]
    plain += [words.text("comment-mail.link", label=label, link=link) for label, link in links]
    rich = [marked for _, marked in sections]
    rich += [f"<p>{anchor(link, label)}</p>" for label, link in links]
    direction = formats.direction(words.language)
    # Some mail programs remove the outermost elements, so an inner one repeats the direction.
    page = [
        f'<!doctype html>\n<html lang="{words.language}" dir="{direction}">',
        f'<div dir="{direction}">',
        *rich,
        "</div>\n</html>\n",
    ]
    return Parts(subject, "\n\n".join(plain) + "\n", "\n".join(page))


def paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def quote(text: str) -> tuple[str, str]:
    """Return a quotation of people's text as plain text and as HTML, in its own direction."""
    plain = "\n".join(f"> {line}" for line in text.split("\n"))
    shown = html.escape(text).replace("\n", "<br>\n")
    return plain, f'<blockquote dir="auto">{shown}</blockquote>'


def unsubscribe_headers(link: str) -> list[tuple[str, str]]:
    """Return the headers for unsubscribing with one click (RFC 8058).

    Raises:
        errors.BadInput: the link is not a web address.
    """
    check_link("unsubscribe", link)
    return [
        ("List-Unsubscribe", f"<{link}>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    ]


def anchor(link: str, label: str) -> str:
    return f'<a href="{html.escape(link)}">{html.escape(label)}</a>'


def check_link(field: str, url: str) -> None:
    """Raise errors.BadInput if a message may not link to a URL."""
    if not is_link(url):
        raise errors.BadInput(field, "not-a-url")


def assemble(
    about: Addressed,
    sender: str,
    parts: Parts,
    more: Sequence[tuple[str, str]] = (),
    *,
    now: datetime,
) -> mime.MailMessage:
    """Return a message with these parts, and with the headers `more`.

    Raises:
        errors.BadInput: the recipient is not one plain address.
    """
    recipient = mail_addresses.check(about.recipient)
    digest = _digest(f"{about.event} {recipient}")
    headers = [
        ("From", mime.mailbox(about.site_name, sender)),
        ("To", recipient),
        ("Subject", mime.text(parts.subject)),
        ("Date", email.utils.format_datetime(now)),
        ("Message-ID", _message_id(digest, sender)),
        ("Auto-Submitted", "auto-generated"),
        ("X-Auto-Response-Suppress", "All"),
        *more,
    ]
    raw = mime.compose(headers, plain=parts.plain, rich=parts.rich, boundary=digest)
    return mime.MailMessage(sender, recipient, raw)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _message_id(digest: str, sender: str) -> str:
    return f"<{digest}@{sender.rpartition('@')[2]}>"


def shown_name(name: str, words: catalogue.Catalogue, *, is_account: bool) -> str:
    """Return an author's name in a form that mail may show."""
    name = plain_words.line(name)
    if not is_account:
        try:
            # Check the name again, because removing characters may turn it into a reserved name.
            name = cleaning.clean_name(name)
        except errors.BadInput:
            name = ""
    return name or words.text("comment-mail.someone")


def excerpt(text: str, most: int = MAX_TEXT) -> str:
    """Return the beginning of a comment's text in a form that mail may show."""
    text = plain_words.words(text).strip()
    return text if len(text) <= most else f"{text[:most]} [...]"
