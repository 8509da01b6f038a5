"""Compose the mail that notifies one address of one comment, including the links."""

import dataclasses
import logging
from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlencode

from comments import config, errors
from comments.domain import records
from comments.domain.ids import author_ids
from comments.notifications import moderation_links
from comments.notifications.mail import compose, mime
from comments.sites import site_settings
from comments.threads import thread_info

_log = logging.getLogger("flatthread")


@dataclasses.dataclass(frozen=True, slots=True)
class AddressedMail:
    """A mail, and its recipient's subscriber id."""

    to: str
    made: mime.MailMessage


class CommentMail:
    """Composes mail with a service's settings."""

    def __init__(self, settings: config.Settings, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock

    def message(  # noqa: PLR0913 - one for each part of the mail
        self,
        to: str,
        address: str,
        event: str,
        comment: records.Comment,
        *,
        about: compose.MailReason,
        unsubscribe: str,
        language: str = "",
    ) -> AddressedMail | None:
        """Return the mail to one address, with a link to unsubscribe.

        Without `language`, the mail is in the language of the site, or in English. If the mail
        cannot be composed, log an error and return None.
        """
        thread = thread_info.get(records.ThreadName(comment.site, comment.thread))
        site = site_settings.get(comment.site)
        notice = compose.Notice(
            event=event,
            recipient=address,
            site=comment.site,
            site_name=site.name,
            thread=comment.thread,
            name=comment.author.name,
            title=thread.title if thread else "",
            text=comment.body,
            place=self._decision_link(comment, address)
            if about is compose.MailReason.HELD
            else self._place(comment, thread),
            unsubscribe=unsubscribe,
            about=about,
            is_account=comment.author.id.startswith(author_ids.ACCOUNT),
            language=language or site.options.language,
        )
        try:
            made = compose.message(notice, self._settings.mail_from, now=self._clock())
        except errors.BadInput as error:
            # For example, an older release may have accepted an invalid address. All other
            # recipients must still receive their mail.
            _log.error("Cannot compose a mail about comment %s: %s", comment.id, error)
            return None
        return AddressedMail(to, made)

    def _decision_link(self, comment: records.Comment, address: str) -> str:
        """Return a link to the page on which a moderator decides about the comment."""
        token = moderation_links.link(
            comment, address, secret=self._settings.secret, now=self._clock()
        )
        return f"{self._settings.public_url}/decisions?{urlencode({'token': token})}"

    def _place(self, comment: records.Comment, thread: records.Thread | None) -> str:
        """Return the comment's URL on its page or, if that page is unknown, on the embed page."""
        on_site = thread_info.address(thread.url, site_settings.get(comment.site)) if thread else ""
        if on_site and compose.is_link(on_site):
            return f"{on_site}#comment-{comment.id}"
        query = urlencode({"thread": comment.thread, "around": comment.id})
        page = f"{self._settings.public_url}/embed/{comment.site}"
        return f"{page}?{query}#comment-{comment.id}"

    def link(self, page: str, token: str) -> str:
        """Return the URL of a page for managing subscriptions."""
        return f"{self._settings.public_url}/subscriptions/{page}?{urlencode({'token': token})}"
