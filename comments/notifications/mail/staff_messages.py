"""Compose the mail that only staff get: the daily digest.

Staff read them in the language of the site, or in English. The rules of `compose` apply.
"""

import dataclasses
import html
from collections.abc import Callable, Sequence
from datetime import datetime

from comments.domain.languages import catalogue, formats
from comments.notifications.mail import compose, mime, plain_words

MOST = 25  # Comments in a digest
MAX_TEXT = 300  # Maximum number of a comment's characters that a digest shows.


@dataclasses.dataclass(frozen=True, slots=True)
class DigestComment:
    """A comment in a digest; `title` is that of its page."""

    name: str
    title: str
    text: str
    is_account: bool
    is_held: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Digest:
    """The new comments of a period, and the number of all held ones.

    `has_more` says that the period has more comments than `comments`. `queue` links to the console.
    """

    event: str
    recipient: str
    site_name: str
    comments: Sequence[DigestComment]
    has_more: bool
    held: int
    queue: str
    unsubscribe: str
    language: str


def digest(made: Digest, sender: str, *, now: datetime) -> mime.MailMessage:
    """Return the mail for a digest. The result depends only on the arguments.

    Raises:
        errors.BadInput: the recipient is not one plain address, or a link is not a web address.
    """
    compose.check_link("queue", made.queue)
    t = _words(made.language)
    opening = [t("staff-mail.digest-opening", site=made.site_name)]
    if made.held:
        opening.append(t("staff-mail.digest-held", count=made.held))
    plain, rich = [*opening], [f"<p>{html.escape(line)}</p>" for line in opening]
    for comment in made.comments:
        heading = _heading(comment, t)
        text = compose.excerpt(comment.text, MAX_TEXT)
        quoted = "\n".join(f"> {line}" for line in text.split("\n"))
        plain.append(f"{heading}\n{quoted}")
        shown = html.escape(text).replace("\n", "<br>\n")
        rich.append(f"<p>{html.escape(heading)}</p>\n<blockquote>{shown}</blockquote>")
    if made.has_more:
        plain.append(t("staff-mail.digest-more"))
        rich.append(f"<p>{html.escape(t('staff-mail.digest-more'))}</p>")
    for words, link in (
        (t("staff-mail.queue"), made.queue),
        (t("staff-mail.unsubscribe"), made.unsubscribe),
    ):
        plain.append(f"{words}: {link}")
        rich.append(f"<p>{compose.anchor(link, words)}</p>")
    subject = t("staff-mail.digest-subject", site=made.site_name, count=len(made.comments))
    parts = compose.Parts(subject, "\n\n".join(plain) + "\n", _page(made.language, rich))
    headers = compose.unsubscribe_headers(made.unsubscribe)
    return compose.assemble(made, sender, parts, headers, now=now)


def _words(language: str) -> Callable[..., str]:
    known = language in catalogue.languages()
    return catalogue.of(language if known else catalogue.ENGLISH.language).text


def _heading(comment: DigestComment, t: Callable[..., str]) -> str:
    name = compose.shown_name(comment.name, is_account=comment.is_account)
    title = plain_words.line(comment.title)
    if comment.is_held:
        return t("staff-mail.held", name=name, title=title or "-")
    return t("staff-mail.published", name=name, title=title or "-")


def _page(language: str, parts: Sequence[str]) -> str:
    known = language if language in catalogue.languages() else catalogue.ENGLISH.language
    direction = formats.direction(known)
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="{known}" dir="{direction}">\n{body}\n</html>\n'
