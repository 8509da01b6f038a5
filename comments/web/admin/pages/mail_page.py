"""The mail server of the service, for its owners: connect, test and remove it.

Before a server is stored, the service connects and signs in to it. SMTP_URL has precedence: the
page then shows the server of the environment, which can only be tested.
"""

import contextlib
import secrets
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import flask
import msgspec

from comments import config, errors, setting_values
from comments.accounts import accounts
from comments.accounts.passwords import password_login
from comments.domain import outcomes
from comments.domain.moderation import roles
from comments.limits import rate_limits
from comments.notifications.mail import compose, smtp
from comments.sites import mail_server
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields
from comments.web.http import context
from comments.web.http.decode.parameters import Typed
from comments.web.rendering import labels
from comments.web.sign_in import account_pages, signed_in

blueprint = site_visit.service_blueprint("mail", "mail")

# Maximum number of connections to mail servers that owners may cause.
_LIMIT = rate_limits.Limit("mail-server", 20, timedelta(minutes=10))
_LONGEST_REASON = 300  # Characters of a mail server's error


class MailServerForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mail server. `current` is the password of the owner, `password` that of the server."""

    security: setting_values.Security
    host: Typed
    sender: Typed
    port: Typed = ""
    user: Typed = ""
    password: Typed = ""
    url: Typed = ""
    current: Typed = ""


class TestMailForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address that gets a test message."""

    email: Typed


class MailRemovalForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The password of the owner who removes the mail server."""

    current: Typed = ""


@blueprint.page("")
def show(owner: accounts.Account, _query: object) -> flask.Response:
    """Show the mail server and where it comes from."""
    return _page(owner)


@blueprint.form("", MailServerForm)
def save(owner: accounts.Account, sent: MailServerForm) -> flask.Response:
    """Connect to a mail server and, if it accepts the service, store it."""
    settings, now = context.settings(), context.now()
    if settings.smtp is not None:
        raise errors.Conflict("mail-by-environment")
    port = sent.port.strip() or str(setting_values.MAIL_PORTS[sent.security])
    given = mail_server.MailServer(
        security=sent.security,
        host=sent.host,
        port=form_fields.number("port", port),
        sender=sent.sender,
        url=sent.url,
        user=sent.user.strip(),
        password=sent.password,
    )
    checked, server = mail_server.check(given, settings, now=now)
    account_pages.confirm(owner, sent.current)
    _take(settings, now)
    if reason := smtp.fault(server):
        raise errors.BadInput("host", "mail-server-refuses", reason=reason[:_LONGEST_REASON])
    mail_server.save(checked, site_visit.service_audit_entry("set-mail"))
    return signed_in.redirect_to("admin/mail#saved")


@blueprint.form("/test", TestMailForm)
def send_test(owner: accounts.Account, sent: TestMailForm) -> flask.Response:
    """Send a message to an address, and show what the mail server answered."""
    settings, now = mail_server.apply(context.settings()), context.now()
    if settings.smtp is None:
        raise errors.Conflict("no-mail")
    host = urlsplit(settings.public_url).hostname or ""
    asked = compose.TestMail(secrets.token_hex(16), sent.email.strip(), host)
    message = compose.test_message(asked, settings.mail_from, now=now)
    _take(settings, now)
    outcome = smtp.send(settings.smtp, message)
    if outcome.end is not outcomes.End.DELIVERED:
        raise errors.BadInput("email", "mail-server-refuses", reason=outcome.reason)
    return _page(owner, said=labels.text("admin.mail-tested", address=asked.recipient))


@blueprint.form("/remove", MailRemovalForm)
def remove(owner: accounts.Account, sent: MailRemovalForm) -> flask.Response:
    """Remove the stored mail server. The service then sends no more mail."""
    account_pages.confirm(owner, sent.current)
    mail_server.save(None, site_visit.service_audit_entry("set-mail"))
    return signed_in.redirect_to("admin/mail#removed")


def _take(settings: config.Settings, now: datetime) -> None:
    if not rate_limits.take(_LIMIT, roles.SERVICE, settings.secret, now=now):
        raise errors.TooMany(retry_after=int(_LIMIT.window.total_seconds()))


def _page(account: accounts.Account, *, said: str = "") -> flask.Response:
    settings = context.settings()
    active = mail_server.apply(settings)
    address = ""
    with contextlib.suppress(errors.BadLink):  # It was encrypted with a SECRET that is lost.
        address = accounts.address_of(account, settings.secret, now=context.now())
    return signed_in.page(
        "admin/mail.html",
        settings=settings,
        server=active.smtp,
        sender=active.mail_from,
        stored=mail_server.get(),
        service=settings.public_url or context.service_url(),
        address=address,
        has_password=account.has_password,
        usual_ports=setting_values.MAIL_PORTS,
        said=said,
    )


blueprint.show_again(show, errors.TooMany, password_login.Wrong)
