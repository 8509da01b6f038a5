"""Plan and send the mail that follows from events about comments.

This module owns the event handlers that send mail (`dispatcher`). The work is divided into steps.
Each step is an event that follows from the previous event (`mail_jobs`). Each step is therefore
small, so a crash repeats little work. The steps are:

1. The comment's event: decide who receives mail.
2. Replies and staff (`staff_mail`): mail a few recipients, identified by their ids.
3. Followers of the thread: mail the next `PAGE` followers, and make an event for the remaining
   followers.

Each step reads the comment again. Subscribers therefore receive mail only about comments that
readers see at that time, and staff about held comments only while they are pending. No recipient
receives two mails about one comment: step 3 omits the recipients of step 2. Authors receive no mail
about their own comments. They are recognized by their author ids, not by the addresses that they
entered, because such an address may belong to anyone.

All mails about one event to one address have the same Message-ID, so if a crash repeats a mail,
most mail programs show it only once. A crash repeats at most `PAGE` mails. If the mail server is
unavailable, the remaining mails of the page are retried later. If a single recipient is temporarily
unreachable, only that mail is retried. A mail that the server permanently refuses is not retried.
"""

import dataclasses
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import msgspec

from comments import config, errors, setting_values
from comments.accounts import accounts, identities, security_log
from comments.accounts.links import address_links, email_login, invitations
from comments.domain import records
from comments.domain.languages import catalogue
from comments.domain.outcomes import End
from comments.domain.records import Status
from comments.events import dispatcher, mail_jobs, outbox, retry_pauses
from comments.limits import usage
from comments.moderation.classifiers import classifier_answers
from comments.moderation.policy import author_links
from comments.notifications import double_opt_in, subscriptions, thread_followers
from comments.notifications.mail import comment_mail, compose, mime, smtp
from comments.notifications.staff import staff_mail
from comments.sites import mail_server, site_settings
from comments.store import reads
from comments.store.models import comment_rows, conversion, event_rows
from comments.threads import thread_info

PAGE = 25  # Maximum number of mails per event.
TERM = timedelta(minutes=15)  # Long enough to send `PAGE` mails to a slow server.
MAIL = frozenset({outbox.EventKind.MAIL})
_TOLD_OF = outbox.OF_COMMENTS - {outbox.EventKind.IMPORTED}

_log = logging.getLogger("flatthread")


class Unsent(Exception):
    """Mail could not be sent, possibly for a temporary reason."""


@dataclasses.dataclass(frozen=True, slots=True)
class _MailResult:
    """The result of sending mail.

    `count` is the number of mails to send. `left` lists the recipients whose mail could not be sent
    because the server was unavailable, and `later` lists the recipients whose mail was refused
    temporarily. `reason` is the reason for the last failure.
    """

    count: int
    left: Sequence[str]
    later: Sequence[str]
    reason: str


def handlers(
    settings: config.Settings, clock: Callable[[], datetime]
) -> tuple[dispatcher.Handler, ...]:
    """Return the handlers that send mail, or none if there is no mail server now."""
    settings = mail_server.apply(settings)
    if settings.smtp is None:
        return ()
    notices = MailPlanner(settings, settings.smtp, clock)
    return (
        dispatcher.Sending("notices", notices.plan, kinds=_TOLD_OF),
        dispatcher.Sending("mail", notices.send, kinds=MAIL, term=TERM),
    )


class MailPlanner:
    """Plans and sends mail; its methods are the event handlers."""

    def __init__(
        self, settings: config.Settings, server: setting_values.Smtp, clock: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._server = server
        self._clock = clock
        self._mail = comment_mail.CommentMail(settings, clock)
        self._staff = staff_mail.StaffMailer(settings, clock)

    # --- Step 1 --------------------

    def plan(self, event: outbox.Event) -> list[event_rows.EventRow]:
        """Return the mail events that follow from a comment's event."""
        change = event.changes[0]
        was = None if change.old is None else change.old.status
        status = None if change.new is None else change.new.status
        if status == was or status not in {Status.APPROVED, Status.PENDING}:
            return []
        comment = _comment(event.id, status)
        # If a classifier has not answered yet, mail waits for the last answer.
        if comment is None or (
            status == Status.PENDING and classifier_answers.is_waiting(comment.id)
        ):
            return []
        if status == Status.PENDING:
            has_any = staff_mail.wants_held(site_settings.get(comment.site))
            return [self._job_event(mail_jobs.HeldCommentMail(event.id))] if has_any else []
        # Staff who were told that the comment is held are not told that it was approved.
        staff = [] if was == Status.PENDING else self._staff.readers(comment)
        return [self._job_event(job) for job in self._mail_jobs_of(event.id, comment, [*staff])]

    def _mail_jobs_of(
        self, event: str, comment: records.Comment, staff: Sequence[str]
    ) -> Iterator[mail_jobs.EventMail]:
        themselves, _ = subscriptions.of_author(comment.site, comment.author.id)
        to: list[str] = []
        if author := _answered_author(comment):
            _, wanting = subscriptions.of_author(comment.site, author)
            to = [subscriber for subscriber in wanting if subscriber not in themselves]
            if to:
                yield mail_jobs.ReplyMail(event, author, to)
        if staff := [who for who in staff if who not in to]:
            yield mail_jobs.PublishedMail(event, [*staff])
        if thread_followers.subscribers(_thread(comment), limit=1).ids:
            yield mail_jobs.FollowerMail(event, [*themselves, *to, *staff])

    # --- Steps 2 and 3 --------------------

    def send(self, event: outbox.Event) -> list[event_rows.EventRow]:
        """Send the mail for one event, and return the events for the remaining mail.

        Raises:
            Unsent: no mail could be sent.
        """
        job = mail_jobs.decode(event.detail)
        if isinstance(job, mail_jobs.LinkMail | mail_jobs.AccountMail):
            return self._send_service_mail(event, job)
        if isinstance(job, mail_jobs.StaffMail | mail_jobs.DigestMail):
            return self._tell_staff(event, job)
        comment = _comment(job.event, Status.APPROVED)
        if comment is None:
            return []
        thread_info.fresh(_thread(comment))  # Refresh the cached title for the mails.
        if isinstance(job, mail_jobs.ReplyMail):
            wanting = subscriptions.subscribers_to_replies(job.to, comment.site, job.author)
            return self._tell_about_reply(event, job, comment, wanting)
        if isinstance(job, mail_jobs.RepeatedMail):
            return self._tell_again(event, job, comment)
        return self._tell_page(event, job, comment)

    def _send_service_mail(
        self, event: outbox.Event, job: mail_jobs.LinkMail | mail_jobs.AccountMail
    ) -> list[event_rows.EventRow]:
        try:
            if isinstance(job, mail_jobs.AccountMail):
                made = self._account_message(event.id, job)
            else:
                make = {
                    mail_jobs.ConfirmationMail: self._confirmation_mail,
                    mail_jobs.LoginMail: self._login_mail,
                    mail_jobs.InvitationMail: self._invitation_mail,
                    mail_jobs.AddressMail: self._address_mail,
                }[type(job)]
                now = self._clock()
                mail = make(event.id, job.link, now)
                made = compose.link_message(mail, self._settings.mail_from, now=now)
        except (errors.BadLink, errors.BadInput, errors.NotFound):
            return []  # The link expired, or its address or account is no longer there or accepted.
        # Such mails are not charged to a site, because the site's owner cannot limit them.
        sent = self._post([comment_mail.AddressedMail("", made)], usage.SERVICE)
        if sent.left or sent.later:
            raise Unsent(sent.reason)
        return []

    def _confirmation_mail(self, event: str, asked: str, now: datetime) -> compose.LinkMail:
        request = double_opt_in.request_of(asked, secret=self._settings.secret, now=now)
        link = self._mail.link("confirm", asked)
        site = site_settings.get(request.site)
        language = self._language(request.email, site.options.language)
        things = double_opt_in.things(request, catalogue.of_or_english(language))
        return compose.LinkMail(event, request.email, site.name, link, "confirm", language, things)

    def _login_mail(self, event: str, asked: str, now: datetime) -> compose.LinkMail:
        request = email_login.link_of(asked, secret=self._settings.secret, now=now)
        link = f"{self._settings.public_url}/sign-in#{asked}"
        site = site_settings.get(request.site)
        language = self._language(request.address, site.options.language)
        return compose.LinkMail(event, request.address, site.name, link, "sign-in", language)

    def _invitation_mail(self, event: str, sealed: str, now: datetime) -> compose.LinkMail:
        url = self._settings.public_url
        mailed = invitations.open_mailed(sealed, secret=self._settings.secret, now=now)
        link = invitations.link(url, "admin/welcome", mailed.token)
        host = urlsplit(url).hostname or ""
        language = self._language(mailed.address)
        return compose.LinkMail(event, mailed.address, host, link, "invitation", language)

    def _address_mail(self, event: str, sealed: str, now: datetime) -> compose.LinkMail:
        url = self._settings.public_url
        asked = address_links.open_link(sealed, secret=self._settings.secret, now=now)
        link = invitations.link(url, "admin/address", sealed)
        host, language = urlsplit(url).hostname or "", security_log.language_of(asked.account)
        return compose.LinkMail(event, asked.address, host, link, "address", language)

    def _language(self, address: str, otherwise: str = "") -> str:
        """Return the language of the account that has an address, if there is one."""
        account = accounts.id_by_identity(identities.of_address(address), self._settings.secret)
        return security_log.language_of(account) or otherwise

    def _account_message(self, event: str, job: mail_jobs.AccountMail) -> mime.MailMessage:
        account, now, secret = accounts.get(job.account), self._clock(), self._settings.secret
        if account is not None and job.address:
            account = msgspec.structs.replace(account, address=job.address)
        address = account and accounts.readable_address(account, secret, now=now)
        if account is None or not address:
            raise errors.NotFound("account", job.account)
        url = self._settings.public_url
        notice = compose.AccountNotice(
            event=event,
            recipient=address,
            site_name=urlsplit(url).hostname or "",
            name=account.name,
            change=job.event,
            by=job.by,
            at=datetime.fromtimestamp(job.at, UTC),
            link=f"{url}/admin/account",
            language=job.language,
        )
        return compose.account_notice(notice, self._settings.mail_from, now=now)

    def _tell_staff(
        self, event: outbox.Event, job: mail_jobs.StaffMail | mail_jobs.DigestMail
    ) -> list[event_rows.EventRow]:
        if isinstance(job, mail_jobs.DigestMail):
            sent = self._post(list(self._staff.digest_mails(event.id, job)), job.site)
            if sent.left or sent.later:
                raise Unsent(sent.reason)
            return []
        is_held = isinstance(job, mail_jobs.HeldCommentMail)
        comment = _comment(job.event, Status.PENDING if is_held else Status.APPROVED)
        if comment is None:
            return []
        thread_info.fresh(_thread(comment))  # Refresh the cached title for the mails.
        sent = self._post(self._staff.comment_mails(job, comment), comment.site)
        self._check_progress(event, sent)
        return [
            self._retry_event(type(job)(job.event, [who]), who) for who in (*sent.later, *sent.left)
        ]

    def _tell_about_reply(
        self,
        event: outbox.Event,
        job: mail_jobs.ReplyMail,
        comment: records.Comment,
        wanting: Sequence[str],
    ) -> list[event_rows.EventRow]:
        name = subscriptions.name_of_replies(comment.site, job.author)
        sent = self._tell(job.event, comment, wanting, (name, compose.MailReason.REPLY))
        self._check_progress(event, sent)
        return [
            self._retry_event(mail_jobs.ReplyMail(job.event, job.author, [who]), who)
            for who in (*sent.later, *sent.left)
        ]

    def _tell_again(
        self, event: outbox.Event, job: mail_jobs.RepeatedMail, comment: records.Comment
    ) -> list[event_rows.EventRow]:
        if thread_followers.is_subscriber(_thread(comment), job.to):
            self._check_progress(event, self._tell_followers(job.event, comment, [job.to]))
        return []

    def _tell_page(
        self, event: outbox.Event, job: mail_jobs.FollowerMail, comment: records.Comment
    ) -> list[event_rows.EventRow]:
        page = thread_followers.subscribers(_thread(comment), after=job.after, limit=PAGE)
        to = [subscriber for subscriber in page.ids if subscriber not in job.besides]
        sent = self._tell_followers(job.event, comment, to)
        self._check_progress(event, sent)
        follow = [
            self._retry_event(mail_jobs.RepeatedMail(job.event, who), who) for who in sent.later
        ]
        if sent.left:
            # When the server is available again, retry the rest of this page and the following
            # pages.
            first = page.ids.index(sent.left[0])
            before = page.ids[first - 1] if first else job.after
            rest = mail_jobs.FollowerMail(job.event, job.besides, before, job.page + 1)
            return [*follow, self._retry_event(rest, "")]
        if page.position is not None:
            behind = page.position
            rest = mail_jobs.FollowerMail(job.event, job.besides, behind, job.page + 1)
            return [*follow, self._job_event(rest)]
        return follow

    def _tell_followers(
        self, event: str, comment: records.Comment, to: Sequence[str]
    ) -> _MailResult:
        name = subscriptions.name_of_thread(_thread(comment))
        return self._tell(event, comment, to, (name, compose.MailReason.COMMENT))

    def _tell(
        self,
        event: str,
        comment: records.Comment,
        to: Sequence[str],
        subscription: tuple[str, compose.MailReason],
    ) -> _MailResult:
        """Mail a comment to subscribers who have not reached their daily mail limit."""
        day, most = self._clock().date().isoformat(), self._settings.mails_per_day
        name, about = subscription
        addresses = subscriptions.reserve_mail(to, day=day, most=most) if to else {}
        messages: list[comment_mail.AddressedMail] = []
        for who in to:
            address = self._readable_address(addresses.get(who, ""))
            if address:
                ending = double_opt_in.Unsubscription(who, (name,))
                token = double_opt_in.unsubscribe_link(ending, self._settings.secret)
                link = self._mail.link("unsubscribe", token)
                message = self._mail.message(
                    who, address, event, comment, about=about, unsubscribe=link
                )
                messages += [] if message is None else [message]
        sent = self._post(messages, comment.site)
        if unsent := (*sent.left, *sent.later):
            subscriptions.release_mail(unsent, day=day)
        return sent

    def _readable_address(self, stored: str) -> str:
        try:
            return stored and double_opt_in.address(
                stored, secret=self._settings.secret, now=self._clock()
            )
        except errors.BadLink:
            _log.error("Cannot decrypt an address: it was encrypted with a different SECRET")
            return ""

    def _check_progress(self, event: outbox.Event, sent: _MailResult) -> None:
        """Raise `Unsent` to retry the event if nothing was sent or its only mail failed again."""
        is_stuck = bool(sent.left) and len(sent.left) == sent.count
        if is_stuck or (sent.later and sent.count == 1 and event.attempts):
            raise Unsent(sent.reason)

    def _post(self, letters: Sequence[comment_mail.AddressedMail], site: str) -> _MailResult:
        sent = self._hand_over(letters)
        mails = sent.count - len(sent.left) - len(sent.later)
        usage.note(site, usage.UsageAmounts(mails=mails), now=self._clock())
        return sent

    def _hand_over(self, letters: Sequence[comment_mail.AddressedMail]) -> _MailResult:
        later: list[str] = []
        reason = ""
        with smtp.SmtpClient(self._server) as session:
            for number, message in enumerate(letters):
                outcome = session.send(message.made)
                if outcome.end is End.GIVE_UP:
                    _log.warning("A mail was refused and will not be retried: %s", outcome.reason)
                if outcome.end is End.RETRY:
                    reason = outcome.reason
                    if outcome.is_general:
                        left = [unsent.to for unsent in letters[number:]]
                        return _MailResult(len(letters), left, later, reason)
                    later.append(message.to)
        return _MailResult(len(letters), [], later, reason)

    # --- Events that follow --------------------

    def _job_event(self, job: mail_jobs.EventMail) -> event_rows.EventRow:
        # The event is due immediately: on App Engine, a sweep delivers it, and a claim ensures that
        # no other process delivers it.
        due = self._clock()
        return outbox.follow(outbox.EventKind.MAIL, _id_of(job, ""), mail_jobs.encode(job), due=due)

    def _retry_event(self, job: mail_jobs.EventMail, who: str) -> event_rows.EventRow:
        """Make an event that retries unsent mail after a pause."""
        detail, due = mail_jobs.encode(job), self._clock() + retry_pauses.pause(1)
        return outbox.follow(outbox.EventKind.MAIL, _id_of(job, who), detail, due=due, attempts=1)


def _id_of(job: mail_jobs.EventMail, who: str) -> str:
    """Return the id of a mail job's event, which is always the same for the same job."""
    page = f"{job.page}" if isinstance(job, mail_jobs.FollowerMail) else ""
    return outbox.mail_id(job.event, mail_jobs.tag(job), page, who)


def _comment(event: str, status: str) -> records.Comment | None:
    """Return an event's comment if it still has the given status and a site, otherwise None."""
    row = reads.get(comment_rows.comment_key(event.partition(".")[0]))
    comment = None if row is None else conversion.comment_record(row)
    if comment is None or comment.status != status or not site_settings.is_active(comment.site):
        return None
    return None if site_settings.get(comment.site).copy_of else comment


def _answered_author(comment: records.Comment) -> str:
    """Return the author id of the comment that this comment answers, or "" if there is none.

    An imported comment that a reader has claimed has the reader's author id.
    """
    row = reads.get(comment_rows.comment_key(comment.reply_to)) if comment.reply_to else None
    author = "" if row is None else str(row.author_id or "")
    return author_links.claimants(comment.site, [author]).get(author, author)


def _thread(comment: records.Comment) -> records.ThreadName:
    return records.ThreadName(comment.site, comment.thread)
