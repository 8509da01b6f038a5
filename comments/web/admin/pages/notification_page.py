"""Who of a site's staff gets mail about its comments (`staff_notices`).

Moderators choose for themselves. Owners choose for everyone, and can add addresses of people
without an account.
"""

from typing import NamedTuple

import flask
import msgspec

from comments import errors
from comments.accounts import accounts
from comments.domain import outcomes
from comments.domain.moderation import roles, staff_notices
from comments.domain.moderation.staff_notices import NoticeChoice, StaffRecipient
from comments.notifications.staff import staff_mail
from comments.sites import mail_server, notice_recipients
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields
from comments.web.http.decode.parameters import Typed
from comments.web.rendering import labels
from comments.web.sign_in import signed_in

blueprint = site_visit.blueprint("notifications")


class NoticeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A choice for an account, by its author id; without `who`, for the address `email`."""

    choice: NoticeChoice
    hour: Typed = str(staff_notices.FIRST_HOUR)
    zone: Typed = staff_notices.NO_ZONE
    who: Typed = ""
    email: Typed = ""


class TestForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request for a test mail to the address of the caller's account."""


class StaffRow(NamedTuple):
    """A recipient as the page shows them: `name` is an account's name, or an address."""

    who: str
    name: str
    has_address: bool
    choice: NoticeChoice
    hour: int
    zone: str


@blueprint.page("/notifications")
def show(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Show the caller's choice and, to owners, those of everyone."""
    return _page(visit)


@blueprint.form("/notifications", NoticeForm)
def choose(visit: site_visit.Visit, sent: NoticeForm) -> flask.Response:
    """Set what an account or an address gets."""
    hour = form_fields.number("hour", sent.hour, 2)
    who = sent.who or sent.email.strip()
    if not who:
        raise errors.BadInput("email", "required")
    if who != visit.account.author:
        signed_in.require(roles.Role.OWNER, visit.site.id)
    if "@" not in who:
        _check_account(who, visit.site.id)
    noted = site_visit.audit_entry(visit, "")
    notice_recipients.choose(
        visit.site.id, who, sent.choice, hour=hour, zone=sent.zone.strip(), noted=noted
    )
    return site_visit.redirect_with_notice(visit, "notifications", "saved")


@blueprint.form("/notifications/test", TestForm)
def test(visit: site_visit.Visit, _sent: object) -> flask.Response:
    """Send a test mail to the caller's address, and show what the mail server answered."""
    address = _own_address(visit)
    if not address:
        raise errors.BadInput("email", "required")
    outcome = staff_mail.send_test(site_visit.settings(), visit.site, address, now=visit.now)
    is_sent = outcome.end is outcomes.End.DELIVERED
    key = "admin.notices-test-sent" if is_sent else "admin.notices-test-failed"
    return _page(visit, said=labels.text(key, reason=outcome.reason))


def _check_account(who: str, site: str) -> None:
    """Raise errors.BadInput if an account cannot get mail about a site."""
    account = accounts.get(who.removeprefix(accounts.AUTHOR))
    if account is None or not account.may(roles.Right.MODERATE, site) or not account.address:
        raise errors.BadInput(
            "who", "unknown-value", allowed="accounts of the site with an address"
        )


def _own_address(visit: site_visit.Visit) -> str:
    return accounts.readable_address(visit.account, site_visit.settings().secret, now=visit.now)


def _page(visit: site_visit.Visit, said: str = "") -> flask.Response:
    known = {recipient.who: recipient for recipient in visit.site.recipients}
    own = visit.account
    return site_visit.page(
        "notifications.html",
        visit,
        own=_account_row(own, known),
        address=_own_address(visit),
        others=_other_rows(visit, known) if visit.is_owner else [],
        sends_mail=mail_server.sends_mail_of(visit.site, site_visit.settings()),
        choices_of_notices=list(NoticeChoice),
        hours=[(hour, f"{hour:02}:00") for hour in range(staff_notices.LAST_HOUR + 1)],
        zones=sorted(staff_notices.zones()),
        new=StaffRecipient("", NoticeChoice.HELD),
        said=said,
    )


def _other_rows(visit: site_visit.Visit, known: dict[str, StaffRecipient]) -> list[StaffRow]:
    """List the other accounts with a role on the site, and then the addresses."""
    rows = [
        _account_row(account, known)
        for account in accounts.staff()
        if account.id != visit.account.id and account.may(roles.Right.MODERATE, visit.site.id)
    ]
    return rows + [
        _row(recipient, recipient.who, has_address=True)
        for recipient in known.values()
        if recipient.is_address
    ]


def _account_row(account: accounts.Account, known: dict[str, StaffRecipient]) -> StaffRow:
    none = StaffRecipient(account.author, NoticeChoice.NONE)
    choice = known.get(account.author, none)
    return _row(choice, account.name, has_address=bool(account.address))


def _row(recipient: StaffRecipient, name: str, *, has_address: bool) -> StaffRow:
    choice, hour, zone = recipient.choice, recipient.hour, recipient.zone
    return StaffRow(recipient.who, name, has_address, choice, hour, zone)


blueprint.show_again(show)
