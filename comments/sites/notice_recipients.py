"""Change who of a site's staff gets which mail, and plan the daily digests.

A digest is planned in one transaction, which writes the mail event and moves the end of the
recipient's last digest. A process that is killed therefore neither loses nor repeats a digest. The
id of the event names the recipient and the minute, so the mails of a repeated event have one
`Message-ID`.
"""

import functools
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from comments import errors
from comments.domain.moderation import staff_notices
from comments.domain.moderation.staff_notices import NoticeChoice, StaffRecipient
from comments.domain.text.addresses import mail_addresses
from comments.events import audit_log, backlog, mail_jobs, outbox
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion, event_rows

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def choose(
    site_id: str,
    who: str,
    choice: NoticeChoice,
    *,
    hour: int = staff_notices.FIRST_HOUR,
    zone: str = staff_notices.NO_ZONE,
    noted: audit_log.Noted,
) -> None:
    """Set which mail an account (by its author id) or an address gets about a site's comments.

    The first digest covers the time from now on. `NoticeChoice.NONE` removes the recipient.

    Raises:
        errors.NotFound: the site does not exist.
        errors.BadInput: the address, hour or zone is invalid, or the site has too many recipients.
    """
    if "@" in who:
        who = _checked_address(who)
    _check_time(hour, zone)

    def body() -> None:
        row = reads.get(comment_rows.site_key(site_id)) if site_id else None
        if row is None or row.deleted is not None:
            raise errors.NotFound("site", site_id)
        if transactions.may_have_run() and audit_log.is_done(noted.act):
            return
        known = {recipient.who: recipient for recipient in conversion.site_record(row).recipients}
        before = known.pop(who, None)
        after = _new_choice(before, StaffRecipient(who, choice, hour, zone=zone), noted.now)
        if after == before:
            return
        known |= {} if after is None else {who: after}
        if len(known) > staff_notices.MOST:
            raise errors.BadInput("email", "too-many-items", limit=staff_notices.MOST)
        transactions.apply(
            _writes(row, known.values()),
            audit_log.entry_writes(
                noted.act, site_id, "site", before="", after="notices", now=noted.now
            ),
        )

    transactions.transaction(body)
    site_settings.COPIES.get().drop(site_id)


def _new_choice(
    before: StaffRecipient | None, wanted: StaffRecipient, now: datetime
) -> StaffRecipient | None:
    if wanted.choice is NoticeChoice.NONE:
        return None
    if wanted.choice is not NoticeChoice.DAILY:
        return StaffRecipient(wanted.who, wanted.choice)
    since = before.since if before and before.since else now
    return msgspec.structs.replace(wanted, since=since)


def _check_time(hour: int, zone: str) -> None:
    if not 0 <= hour <= staff_notices.LAST_HOUR:
        raise errors.BadInput("hour", "out-of-range", minimum=0, maximum=staff_notices.LAST_HOUR)
    if zone not in staff_notices.zones():
        raise errors.BadInput("zone", "unknown-value", allowed="names such as Europe/Berlin, UTC")


def _checked_address(address: str) -> str:
    try:
        return mail_addresses.check(address)
    except errors.BadInput as error:
        raise error.about("email") from error


def plan_digests(now: datetime) -> None:
    """Write the mail events of the digests that are due, without those of deleted sites."""
    # The lower bound excludes null, which sorts before all times.
    for site in reads.names("Site", [("digest", ">", _NEVER), ("digest", "<=", now)]):
        for event in transactions.transaction(functools.partial(_plan, site, now)):
            backlog.tell(event)


def _plan(site: str, now: datetime) -> list[str]:
    row = reads.get(comment_rows.site_key(site))
    if row is None:
        return []
    known = {recipient.who: recipient for recipient in conversion.site_record(row).recipients}
    events: list[event_rows.EventRow] = []
    for recipient in known.values():
        end = recipient.due_end(now)
        if end is not None and recipient.since is not None:
            job = mail_jobs.DigestMail(site, recipient.mark, recipient.since, end)
            name = outbox.mail_id(mail_jobs.tag(job), site, recipient.mark, f"{end:%Y%m%d%H%M}")
            detail = mail_jobs.encode(job)
            events.append(outbox.follow(outbox.EventKind.MAIL, name, detail, due=now))
            known[recipient.who] = msgspec.structs.replace(recipient, since=end)
    if row.deleted is not None:
        events.clear()
    transactions.apply(_writes(row, known.values()), outbox.follow_up_writes(events))
    return [event.key.id() for event in events]


def _writes(row: comment_rows.SiteRow, known: Iterable[StaffRecipient]) -> ownership.Writes:
    kept = tuple(known)
    row.moderators = [recipient.who for recipient in kept if recipient.is_address]
    row.notices = staff_notices.encode(kept)
    row.digest = min(filter(None, (recipient.next_end() for recipient in kept)), default=None)
    return ownership.Writes("site_settings", put=(row,))
