"""Compose the mail that a site's staff get: about held and published comments, and daily digests.

`staff_notices` defines who gets what. Accounts without a role on the site get nothing, whatever is
stored, and nobody gets mail about their own comment. An address gets at most `MAILS_PER_DAY` mails
a day. Accounts get mail in the language of the browser that last signed in, and other addresses in
the language of the site, or in English.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from comments import config, errors
from comments.accounts import accounts, security_log
from comments.domain import outcomes, records
from comments.domain.ids import author_ids
from comments.domain.moderation import staff_notices
from comments.domain.moderation.staff_notices import NoticeChoice
from comments.domain.records import Status
from comments.domain.text.addresses import mail_addresses
from comments.events import mail_jobs
from comments.limits import rate_limits, usage
from comments.moderation import review_queue
from comments.notifications import double_opt_in
from comments.notifications.mail import comment_mail, compose, smtp, staff_messages
from comments.notifications.staff import staff_links
from comments.sites import mail_server, site_settings
from comments.threads import thread_info

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
PER_ADDRESS = rate_limits.Limit("test mails", 5, _HOUR)
_ABOUT_HELD = frozenset({NoticeChoice.EACH, NoticeChoice.HELD})
_ABOUT_PUBLISHED = frozenset({NoticeChoice.EACH})


class StaffAddress(NamedTuple):
    """A recipient with their address."""

    recipient: staff_notices.StaffRecipient
    address: str


def wants_held(site: records.Site) -> bool:
    """Return whether anybody may want mail about held comments, without reading accounts."""
    return any(recipient.choice in _ABOUT_HELD for recipient in site.recipients)


class StaffMailer:
    """Composes mail with a service's settings."""

    def __init__(self, settings: config.Settings, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock
        self._mail = comment_mail.CommentMail(settings, clock)

    def readers(self, comment: records.Comment) -> Mapping[str, StaffAddress]:
        """Return who gets mail about a comment with this status, by subscriber id."""
        choices = _ABOUT_HELD if comment.status is Status.PENDING else _ABOUT_PUBLISHED
        site = site_settings.get(comment.site)
        by_id = {}
        for recipient in site.recipients:
            if recipient.choice not in choices or recipient.who == comment.author.id:
                continue
            if address := self._address(site.id, recipient):
                who = double_opt_in.subscriber_of(address, self._settings.secret)
                by_id[who] = StaffAddress(recipient, address)
        return by_id

    def _address(self, site: str, recipient: staff_notices.StaffRecipient) -> str:
        secret, now = self._settings.secret, self._clock()
        return accounts.recipient_address(site, recipient, secret=secret, now=now)

    def comment_mails(
        self, job: mail_jobs.StaffMail, comment: records.Comment
    ) -> list[comment_mail.AddressedMail]:
        """Return the mails about a comment to the recipients of a job."""
        is_held = isinstance(job, mail_jobs.HeldCommentMail)
        about = compose.MailReason.HELD if is_held else compose.MailReason.COMMENT
        made = (
            self._mail.message(
                who,
                staff.address,
                job.event,
                comment,
                about=about,
                unsubscribe=self._unsubscribe_link(comment.site, staff.recipient),
                language=_language(staff.recipient),
            )
            for who, staff in self.readers(comment).items()
            if self._is_asked(job, staff.address) and self._take_mail(staff.address)
        )
        return [message for message in made if message is not None]

    def digest_mails(
        self, event: str, job: mail_jobs.DigestMail
    ) -> Iterator[comment_mail.AddressedMail]:
        """Yield the mail for a digest, unless it is empty or its recipient no longer wants it."""
        if not site_settings.is_active(job.site):
            return
        site = site_settings.get(job.site)
        if site.copy_of:
            return
        recipient = next(
            (recipient for recipient in site.recipients if recipient.mark == job.mark), None
        )
        if recipient is None or recipient.choice is not NoticeChoice.DAILY:
            return
        cases = list(self._new_cases(job))
        address = self._address(job.site, recipient)
        if not cases or not address or not self._take_mail(address):
            return
        made = staff_messages.Digest(
            event=event,
            recipient=address,
            site_name=site.name,
            comments=[_digest_comment(case.comment) for case in cases[: staff_messages.MOST]],
            has_more=len(cases) > staff_messages.MOST,
            held=review_queue.count_pending(site.id),
            queue=f"{self._settings.public_url}/admin/sites/{site.id}/queue",
            unsubscribe=self._unsubscribe_link(site.id, recipient),
            language=_language(recipient) or site.options.language,
        )
        message = staff_messages.digest(made, self._settings.mail_from, now=self._clock())
        yield comment_mail.AddressedMail("", message)

    def _new_cases(self, job: mail_jobs.DigestMail) -> Iterator[records.Case]:
        """Yield the newest comments of a digest's period, held ones first."""
        behind = (job.until + timedelta(microseconds=1), 0, "~")
        for status in (Status.PENDING, Status.APPROVED):
            wanted = review_queue.QueueFilter(job.site, (status,))
            cursor = review_queue.seal(behind, wanted.label, self._settings.secret)
            page = review_queue.page(
                wanted,
                limit=staff_messages.MOST + 1,
                cursor=cursor,
                secret=self._settings.secret,
            )
            yield from (
                case for case in page.cases if job.since < case.comment.created <= job.until
            )

    def _is_asked(self, job: mail_jobs.StaffMail, address: str) -> bool:
        # The ids in the job may have been derived with an older secret.
        ids = double_opt_in.ids_of(address, self._settings.secret)
        return job.to is None or not set(job.to).isdisjoint(ids)

    def _take_mail(self, address: str) -> bool:
        limit = rate_limits.Limit("moderators", self._settings.mails_per_day, _DAY)
        return rate_limits.take(limit, address, self._settings.secret, now=self._clock())

    def _unsubscribe_link(self, site: str, recipient: staff_notices.StaffRecipient) -> str:
        now = self._clock()
        token = staff_links.link(site, recipient, secret=self._settings.secret, now=now)
        return f"{self._settings.public_url}/notices/unsubscribe?{urlencode({'token': token})}"


def _language(recipient: staff_notices.StaffRecipient) -> str:
    """Return the language of an account's last sign-in, or "" for an address."""
    account = recipient.who.removeprefix(accounts.AUTHOR)
    return "" if recipient.is_address else security_log.language_of(account)


def _digest_comment(comment: records.Comment) -> staff_messages.DigestComment:
    thread = thread_info.get(records.ThreadName(comment.site, comment.thread))
    return staff_messages.DigestComment(
        name=comment.author.name,
        title=thread.title if thread else "",
        text=comment.body,
        is_account=comment.author.id.startswith(author_ids.ACCOUNT),
        is_held=comment.status is Status.PENDING,
    )


def send_test(
    settings: config.Settings, site: records.Site, address: str, *, now: datetime
) -> outcomes.Outcome:
    """Send a test mail to an address of a site's staff, and return what the mail server answered.

    Raises:
        errors.BadInput: the address is not one plain address.
        errors.Conflict: this service sends no mail.
        errors.TooMany: the address got `PER_ADDRESS` test mails within an hour.
    """
    settings = mail_server.apply(settings)
    if settings.smtp is None or site.copy_of:
        raise errors.Conflict("no-mail")
    made = compose.TestMail(secrets.token_hex(16), mail_addresses.check(address), site.name)
    message = compose.test_message(made, settings.mail_from, now=now)
    if not rate_limits.take(PER_ADDRESS, address.lower(), settings.secret, now=now):
        raise errors.TooMany("too-many", retry_after=int(_HOUR.total_seconds()))
    outcome = smtp.send(settings.smtp, message)
    is_sent = outcome.end is outcomes.End.DELIVERED
    usage.note(site.id, usage.UsageAmounts(mails=int(is_sent)), now=now)
    return outcome
