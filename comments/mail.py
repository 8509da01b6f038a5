"""Mail about comments: one message to one address, made and sent over SMTP.

Owns the form of messages. What must stay true:

- Whoever writes a comment decides nothing but words. In names, titles and texts everything that a
  mail program would make a link of is replaced by `[link]`; HTML is escaped; there are no images.
  The only links are those that the caller gives, of our own host or the site's own page.
- A header is one line: controls become blanks before `EmailMessage` sees them, which refuses them.
- A message goes to one plain address.
- `Message-ID` is made of the event's id and the address, so that who is sent a message twice, after
  a crash between sending and noting it, has it once.
"""

import contextlib
import dataclasses
import enum
import hashlib
import html
import re
import smtplib
import ssl
from collections.abc import Sequence
from datetime import datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from typing import Self

from comments import config, errors, outcomes

TIMEOUT = 10.0  # seconds, of each step; the server is the operator's own choice
MAX_ADDRESS = 254
MAX_TEXT = 2_000  # characters of a comment that a message shows
_MAX_LINE = 200
_POLICY = policy.SMTP.clone(cte_type="7bit")
_GOODBYE = 421  # the server ends the session, whatever it was asked
_PERMANENT = 500  # the first of the codes that another attempt does not change
# The last label is no number: a@127.0.0.1 is an address of a host to some servers.
_ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@([A-Za-z0-9-]+\.)+(?!0[xX])[A-Za-z0-9-]*[A-Za-z][A-Za-z0-9-]*"
)
# A word that mail programs make a link of: a scheme, a host name, an IPv4 address.
_LINK = re.compile(r"://|\w[.\u3002\uff0e\uff61][^\W\d_]{2}|\d\.\d+\.\d+\.\d|@")
_WORD = re.compile(r"\S+")
_INVISIBLE = re.compile("[\xad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
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
    `about` is why this address is told.
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


def message(notice: Notice, sender: str, *, now: datetime) -> EmailMessage:
    """The mail of a notice, the same for the same moment.

    Raises:
        errors.BadInput: the recipient is not one plain address, or a link is no web address.
    """
    _check_link("place", notice.place)
    made = _envelope(notice, sender, _subject(notice), now=now)
    if notice.unsubscribe is not None:
        _check_link("unsubscribe", notice.unsubscribe)
        made["List-Unsubscribe"] = f"<{notice.unsubscribe}>"
        made["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return _filled(made, _plain(notice), _html(notice))


def question(asked: Question, sender: str, *, now: datetime) -> EmailMessage:
    """The mail that asks the owner of an address.

    Raises:
        errors.BadInput: the recipient is not one plain address, or the link is no web address.
    """
    _check_link("link", asked.link)
    subject = f"Do you want mail about comments on {asked.site}?"
    made = _envelope(asked, sender, subject, now=now)
    opening = f"Somebody, perhaps you, asked {asked.site} to tell this address of:"
    closing = "The page asks you once more. If it was not you, do nothing: nothing will be sent."
    plain = "".join(f"- {thing}\n" for thing in asked.things)
    items = "".join(f"<li>{html.escape(thing)}</li>" for thing in asked.things)
    link = html.escape(asked.link)
    return _filled(
        made,
        f"{opening}\n\n{plain}\nIf you want that, open this page within two days:\n"
        f"{asked.link}\n\n{closing}\n",
        f"<!doctype html>\n<p>{html.escape(opening)}</p>\n<ul>{items}</ul>\n"
        f'<p><a href="{link}">I want that</a> (the link works for two days)</p>\n'
        f"<p>{closing}</p>\n",
    )


def entry(asked: Entry, sender: str, *, now: datetime) -> EmailMessage:
    """The mail with which somebody signs in.

    Raises:
        errors.BadInput: the recipient is not one plain address, or the link is no web address.
    """
    _check_link("link", asked.link)
    made = _envelope(asked, sender, f"Sign in to comment on {asked.site}", now=now)
    opening = f"Somebody, perhaps you, wants to comment on {asked.site} with this address."
    closing = (
        "It shows a code for the page you came from. If that was not you, do nothing, and give "
        "the code to nobody."
    )
    link = html.escape(asked.link)
    return _filled(
        made,
        f"{opening}\n\nIf that is you, open this page within half an hour:\n{asked.link}\n\n"
        f"{closing}\n",
        f"<!doctype html>\n<p>{html.escape(opening)}</p>\n"
        f'<p><a href="{link}">That is me</a> (the link works for half an hour)</p>\n'
        f"<p>{closing}</p>\n",
    )


def _check_link(field: str, url: str) -> None:
    if not is_link(url):
        raise errors.BadInput(field, "is not a web address")


def _envelope(
    about: Notice | Question | Entry, sender: str, subject: str, *, now: datetime
) -> EmailMessage:
    recipient = check_address(about.recipient)
    made = EmailMessage(policy=_POLICY)
    digest = hashlib.sha256(f"{about.event} {recipient}".encode()).hexdigest()[:32]
    made["From"] = Address(display_name=about.site, addr_spec=sender)
    made["To"] = Address(addr_spec=recipient)
    made["Subject"] = subject
    made["Date"] = now
    made["Message-ID"] = f"<{digest}@{sender.rpartition('@')[2]}>"
    made["Auto-Submitted"] = "auto-generated"
    made["X-Auto-Response-Suppress"] = "All"
    return made


def _filled(made: EmailMessage, plain: str, rich: str) -> EmailMessage:
    made.set_content(plain)
    made.add_alternative(rich, subtype="html")
    made.set_boundary(f"=-{made['Message-ID'][1:33]}")
    return made


def send(server: config.Smtp, made: EmailMessage) -> outcomes.Outcome:
    """Hand one message to the server once; see `Courier.send`."""
    with Courier(server) as courier:
        return courier.send(made)


class Courier:
    """Hands messages to a server, in one session as long as that lasts. Ends with its `with`."""

    def __init__(self, server: config.Smtp) -> None:
        self._server = server
        self._session: smtplib.SMTP | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The messages were taken; how the server parts does not matter any more.
        if self._session is not None:
            with contextlib.suppress(smtplib.SMTPException, OSError):
                self._session.quit()
        self._drop()

    def send(self, made: EmailMessage) -> outcomes.Outcome:
        """Hand a message to the server once.

        A refusal for good (5xx) of the recipient or the message ends it. Whatever is not about
        this message, a wrong password among it, is worth another attempt.
        """
        is_used = self._session is not None
        outcome = self._tried(made)
        if outcome.is_general:
            self._drop()
            if is_used:
                # Servers end a session after a while, or after so many messages.
                outcome = self._tried(made)
        return outcome

    def _tried(self, made: EmailMessage) -> outcomes.Outcome:
        sender = made["From"].addresses[0].addr_spec
        try:
            if self._session is None:
                self._session = _connected(self._server)
            self._session.sendmail(sender, _recipient(made), made.as_bytes())
        except smtplib.SMTPRecipientsRefused as error:
            return _refused(next(iter(error.recipients.values()))[0])
        except smtplib.SMTPAuthenticationError as error:
            return _unsent(f"did not let us in: {error.smtp_code}")
        except (smtplib.SMTPDataError, smtplib.SMTPSenderRefused) as error:
            return _refused(error.smtp_code)
        except (smtplib.SMTPException, OSError) as error:
            return _unsent(type(error).__name__)
        return outcomes.Outcome(outcomes.End.DELIVERED, "sent")

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def check_address(text: str) -> str:
    """One plain address: no list, no name, no quotes, no literal.

    Raises:
        errors.BadInput: it is anything else.
    """
    local, _, _ = text.partition("@")
    is_dotted = local.startswith(".") or local.endswith(".") or ".." in local
    if len(text) > MAX_ADDRESS or not _ADDRESS.fullmatch(text) or is_dotted:
        raise errors.BadInput("email", "is not one plain address")
    return text


def is_link(url: str) -> bool:
    """Whether a message may lead there."""
    return _URL.fullmatch(url) is not None


def words(text: str) -> str:
    """People's words without what shows nothing, and with nothing that becomes a link."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    # First, so that nothing invisible hides a link.
    shown = _CONTROL.sub(" ", _INVISIBLE.sub("", lines))
    # Word by word: one expression for a word around a link takes the square of a long word's time.
    return _WORD.sub(lambda word: "[link]" if _LINK.search(word[0]) else word[0], shown)


def _connected(server: config.Smtp) -> smtplib.SMTP:
    context = ssl.create_default_context(cafile=server.authority or None)
    if server.security is config.Security.TLS:
        session: smtplib.SMTP = smtplib.SMTP_SSL(
            server.host, server.port, timeout=TIMEOUT, context=context
        )
    else:
        session = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT)
    try:
        if server.security is config.Security.STARTTLS:
            session.starttls(context=context)
        if server.user:
            session.login(server.user, server.password)
    except BaseException:
        session.close()
        raise
    return session


def _recipient(made: EmailMessage) -> str:
    address: str = made["To"].addresses[0].addr_spec
    return address


def _refused(code: int) -> outcomes.Outcome:
    if code == _GOODBYE:
        return _unsent(f"refused: {code}")
    end = outcomes.End.GIVE_UP if code >= _PERMANENT else outcomes.End.RETRY
    return outcomes.Outcome(end, f"refused: {code}")


def _unsent(reason: str) -> outcomes.Outcome:
    return outcomes.Outcome(outcomes.End.RETRY, reason, is_general=True)


def _line(text: str) -> str:
    return " ".join(words(text).split())[:_MAX_LINE]


def _subject(notice: Notice) -> str:
    about = _line(notice.title)
    return f"{_line(notice.name)} {notice.about}" + (f" on {about}" if about else "")


def _shown(notice: Notice) -> str:
    text = words(notice.text).strip()
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} [...]"


def _plain(notice: Notice) -> str:
    quoted = "\n".join(f"> {line}" for line in _shown(notice).split("\n"))
    return f"{_subject(notice)}:\n\n{quoted}\n\n{_offer(notice)}: {notice.place}\n" + (
        f"\nNo more of these: {notice.unsubscribe}\n" if notice.unsubscribe else ""
    )


def _html(notice: Notice) -> str:
    text = html.escape(_shown(notice)).replace("\n", "<br>\n")
    place, unsubscribe = html.escape(notice.place), html.escape(notice.unsubscribe or "")
    ending = f'<p><a href="{unsubscribe}">No more of these</a></p>\n' if unsubscribe else ""
    return (
        f"<!doctype html>\n<p>{html.escape(_subject(notice))}:</p>\n"
        f"<blockquote>{text}</blockquote>\n"
        f'<p><a href="{place}">{_offer(notice)}</a></p>\n{ending}'
    )


def _offer(notice: Notice) -> str:
    """What the link of a notice is for."""
    return "Approve it or refuse it" if notice.about is About.HELD else "Read it"
