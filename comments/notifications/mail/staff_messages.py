"""Compose the mail that only staff get: the daily digest.

The rules of `compose` apply.
"""

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from comments.domain.languages import catalogue
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
    words = catalogue.of_or_english(made.language)
    t = words.text
    opening = [t("comment-mail.digest-opening", site=made.site_name)]
    if made.held:
        opening.append(t("comment-mail.digest-held", count=made.held))
    sections = [(line, compose.paragraph(line)) for line in opening]
    for comment in made.comments:
        heading = _heading(comment, words)
        plain, rich = compose.quote(compose.excerpt(comment.text, MAX_TEXT))
        sections.append((f"{heading}\n{plain}", f"{compose.paragraph(heading)}\n{rich}"))
    if made.has_more:
        more = t("comment-mail.digest-more")
        sections.append((more, compose.paragraph(more)))
    links = [
        (t("comment-mail.queue"), made.queue),
        (t("comment-mail.unsubscribe"), made.unsubscribe),
    ]
    subject = t("comment-mail.digest-subject", site=made.site_name, count=len(made.comments))
    parts = compose.parts_of(words, subject, sections, links)
    headers = compose.unsubscribe_headers(made.unsubscribe)
    return compose.assemble(made, sender, parts, headers, now=now)


def _heading(comment: DigestComment, words: catalogue.Catalogue) -> str:
    name = compose.shown_name(comment.name, words, is_account=comment.is_account)
    key = "comment-mail.held" if comment.is_held else "comment-mail.published"
    return words.text(key, name=name, title=plain_words.line(comment.title) or "-")
