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
    MailReason.COMMENT: ("mail.comment-subject", "mail.comment-subject-untitled"),
    MailReason.REPLY: ("mail.reply-subject", "mail.reply-subject-untitled"),
    MailReason.HELD: ("mail.held-subject", "mail.held-subject-untitled"),
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


@dataclasses.dataclass(frozen=True, slots=True)
class ConfirmationLinkMail:
    """A message that asks an address's owner whether they want mail.

    `link` opens a page with a button.

    `things` describes in the service's own words what the subscription is about. The message
    contains no text that a stranger wrote.
    """

    event: str
    recipient: str
    site_name: str
    things: Sequence[str]
    link: str


@dataclasses.dataclass(frozen=True, slots=True)
class LoginLinkMail:
    """A message with a link that lets the owner of an address sign in to a site.

    With the invitation's texts, the link accepts an invitation, and `site_name` is the service.
    """

    event: str
    recipient: str
    site_name: str
    link: str
    about: Literal["sign-in", "invitation"] = "sign-in"


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
    if notice.unsubscribe is not None:
        more += unsubscribe_headers(notice.unsubscribe)
    parts = Parts(_subject(notice), _plain(notice), _html(notice))
    return assemble(notice, sender, parts, more, now=now)


def question(asked: ConfirmationLinkMail, sender: str, *, now: datetime) -> mime.MailMessage:
    """Return the mail that asks an address's owner for confirmation.

    Raises:
        errors.BadInput: the recipient is not one plain address, or the link is not a web address.
    """
    check_link("link", asked.link)
    things = "".join(f"- {thing}\n" for thing in asked.things)
    items = "".join(f"<li>{html.escape(thing)}</li>" for thing in asked.things)
    opening = t("mail.confirm-opening", site=asked.site_name)
    parts = Parts(
        t("mail.confirm-subject", site=asked.site_name),
        f"{opening}\n\n{things}\n{t('mail.confirm-instruction')}\n{asked.link}\n\n"
        f"{t('mail.confirm-closing')}\n",
        f"<!doctype html>\n<p>{html.escape(opening)}</p>\n<ul>{items}</ul>\n"
        f"<p>{anchor(asked.link, t('mail.confirm-button'))}</p>\n"
        f"<p>{html.escape(t('mail.confirm-term'))}</p>\n<p>{html.escape(t('mail.confirm-closing'))}</p>\n",
    )
    return assemble(asked, sender, parts, now=now)


def entry(asked: LoginLinkMail, sender: str, *, now: datetime) -> mime.MailMessage:
    """Return the mail that contains a link to sign in or to accept an invitation.

    Raises:
        errors.BadInput: the recipient is not one plain address, or the link is not a web address.
    """
    check_link("link", asked.link)
    texts = f"mail.{asked.about}"
    opening = t(f"{texts}-opening", site=asked.site_name)
    parts = Parts(
        t(f"{texts}-subject", site=asked.site_name),
        f"{opening}\n\n{t(f'{texts}-instruction')}\n{asked.link}\n\n{t(f'{texts}-closing')}\n",
        f"<!doctype html>\n<p>{html.escape(opening)}</p>\n"
        f"<p>{anchor(asked.link, t(f'{texts}-button'))}</p>\n"
        f"<p>{html.escape(t(f'{texts}-term'))}</p>\n<p>{html.escape(t(f'{texts}-closing'))}</p>\n",
    )
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
    language = (
        notice.language if notice.language in catalogue.languages() else catalogue.ENGLISH.language
    )
    text = catalogue.of(language).text
    change = text(f"account-mail.change-{notice.change}")
    actor = notice.by if notice.by in _ACTORS else "other"
    moment = formats.moment(notice.at, language)
    facts = [
        text("account-mail.account", name=plain_words.line(notice.name)),
        text("account-mail.time", moment=moment),
        text(f"account-mail.by-{actor or 'self'}"),
    ]
    closing = [text("account-mail.expected"), text("account-mail.unexpected")]
    button = text("account-mail.button")
    plain = [change, "\n".join(facts), *closing, f"{button}: {notice.link}"]
    rich = [change, *facts, *closing]
    parts = Parts(
        text("account-mail.subject", change=change, site=notice.site_name),
        "\n\n".join(plain) + "\n",
        f'<!doctype html>\n<html lang="{language}" dir="{formats.direction(language)}">\n'
        + "".join(f"<p>{html.escape(line)}</p>\n" for line in rich)
        + f"<p>{anchor(notice.link, button)}</p>\n",
    )
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


def _subject(notice: Notice) -> str:
    title = plain_words.line(notice.title)
    titled, untitled = _SUBJECTS[notice.about]
    return t(
        titled if title else untitled,
        name=shown_name(notice.name, is_account=notice.is_account),
        title=title,
    )


def shown_name(name: str, *, is_account: bool) -> str:
    """Return an author's name in a form that mail may show."""
    name = plain_words.line(name)
    if not is_account:
        try:
            # Check the name again, because removing characters may turn it into a reserved name.
            name = cleaning.clean_name(name)
        except errors.BadInput:
            name = ""
    return name or t("mail.someone")


def excerpt(text: str, most: int = MAX_TEXT) -> str:
    """Return the beginning of a comment's text in a form that mail may show."""
    text = plain_words.words(text).strip()
    return text if len(text) <= most else f"{text[:most]} [...]"


def _plain(notice: Notice) -> str:
    opening = t("mail.wrote", name=shown_name(notice.name, is_account=notice.is_account))
    quoted = "\n".join(f"> {line}" for line in excerpt(notice.text).split("\n"))
    links = [t("mail.link", label=_offer(notice), link=notice.place)]
    if notice.unsubscribe is not None:
        links.append(t("mail.link", label=t("mail.unsubscribe"), link=notice.unsubscribe))
    return "\n\n".join([opening, quoted, *links]) + "\n"


def _html(notice: Notice) -> str:
    opening = html.escape(
        t("mail.wrote", name=shown_name(notice.name, is_account=notice.is_account))
    )
    quoted = html.escape(excerpt(notice.text)).replace("\n", "<br>\n")
    links = [anchor(notice.place, _offer(notice))]
    if notice.unsubscribe is not None:
        links.append(anchor(notice.unsubscribe, t("mail.unsubscribe")))
    return f"<!doctype html>\n<p>{opening}</p>\n<blockquote>{quoted}</blockquote>\n" + "".join(
        f"<p>{link}</p>\n" for link in links
    )


def _offer(notice: Notice) -> str:
    """Return the label of the link to a notice's comment."""
    return t("mail.decide" if notice.about is MailReason.HELD else "mail.view")
