"""Owners of the service connect, test and remove a mail server in the admin console."""

import html
import re
from collections.abc import Iterator

import flask
import msgspec
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config, errors, setting_values
from comments.domain.moderation import roles
from comments.events import audit_log
from comments.notifications.mail import smtp
from comments.sites import mail_server
from comments.store import connection, reads
from comments.upkeep import scheduler, wiring
from tests.support.histories import counter_oracle
from tests.support.outside import mail_server as smtp_server
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD
from tests.support.people.admin_forms import browser, send, sign_in, token_of
from tests.support.threads import sample_threads

pytestmark = pytest.mark.usefixtures("quick_passwords", "site")

URL = "https://comments.example"


@pytest.fixture
def owner(app: flask.Flask, store: connection.Store) -> FlaskClient:
    account_holders.account("ann", OWNER)
    client = browser(app)
    sign_in(client)
    return client


@pytest.fixture
def box() -> Iterator[smtp_server.Box]:
    with smtp_server.serving() as box:
        yield box


def _post(client: FlaskClient, path: str = "", **form: str) -> TestResponse:
    sent = {"form": token_of(client), "current": PASSWORD} | form
    return send(client, f"/admin/mail{path}", **sent)


def _save(client: FlaskClient, box: smtp_server.Box, **form: str) -> TestResponse:
    given = {
        "security": "smtp+plain", "host": "localhost", "port": str(box.port),
        "sender": smtp_server.SENDER, "url": URL,
    }  # fmt: skip
    return _post(client, **given | form)


def test_an_empty_port_is_the_usual_one_of_the_encryption(
    owner: FlaskClient, box: smtp_server.Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = list[int]()
    monkeypatch.setattr(smtp, "fault", lambda server: tried.append(server.port) or "none")
    for security in setting_values.Security:
        _save(owner, box, security=security, port=" ")
    assert tried == [465, 587, 25]


def _test(client: FlaskClient) -> TestResponse:
    return send(client, "/admin/mail/test", form=token_of(client), email="ann@example.org")


def test_a_connected_server_sends_mail_until_it_is_removed(
    owner: FlaskClient, app: flask.Flask, settings: config.Settings, box: smtp_server.Box
) -> None:
    """The same process, with the handlers that it made at its start, begins to send mail."""
    asked = "/api/v1/sites/demo/subscription"
    upkeep = scheduler.Scheduler(handlers=lambda: wiring.handlers(settings))
    assert app.test_client().get(asked).json == {"mail": False}
    assert _test(owner).status_code == 409
    saved = _save(owner, box)
    assert (saved.status_code, saved.location) == (303, "../admin/mail#saved"), saved.text
    assert box.taken == [], "a connection is not a message"

    assert "accepted the message to ann@example.org" in _test(owner).text
    assert box.taken[0][1]["From"].endswith(f"<{smtp_server.SENDER}>")
    assert app.test_client().get(asked).json == {"mail": True}
    invitation = {"role": "owner", "site": "*", "email": "bob@example.org"}
    assert "on its way" in send(
        owner, "/admin/people/invite", form=token_of(owner), current=PASSWORD, **invitation
    ).text  # fmt: skip
    upkeep.deliver(counter_oracle.events())
    assert box.recipients == ["ann@example.org", "bob@example.org"]
    assert f"{URL}/admin/welcome#" in box.text()

    assert _post(owner, "/remove", current="not this one").status_code == 403
    assert _post(owner, "/remove").status_code == 303
    assert app.test_client().get(asked).json == {"mail": False}
    log = owner.get("/admin/service").text
    changes = re.findall(r"<bdi>Mail server</bdi></td>\s*<td[^>]*>(.*?)<", log)
    assert changes == [f"localhost:{box.port} → \u2013", f"\u2013 → localhost:{box.port}"]


@pytest.mark.parametrize(
    ("form", "status", "problem"),
    [
        ({"current": "not this one"}, 403, "This is not your current password."),
        ({"host": ""}, 400, "Server does not contain a valid host name"),
        ({"host": "mail.example:25"}, 400, "Server does not contain a valid host name"),
        ({"port": "0"}, 400, "Port must be between 1 and 65"),
        ({"port": "25a"}, 400, "Port must be a whole number"),
        ({"security": "tls"}, 400, "Security must be one of"),
        ({"sender": "Ann <ann@example.org>"}, 400, "Sender must be one e-mail address"),
        ({"url": ""}, 400, "Address is required"),
        ({"url": "comments.example"}, 400, "Address must be a web address"),
        ({"user": "ann", "password": "x"}, 400, "Without encryption"),
        ({"user": "ann", "security": "smtp"}, 400, "Password is required"),
        (
            {"user": "a" * 254, "security": "smtp", "password": "x"},
            400,
            "User name must be one line",
        ),
        ({"security": "smtp"}, 400, "STARTTLS extension not supported"),
    ],
)
def test_a_refused_server_is_not_stored_and_the_form_keeps_what_was_entered(
    owner: FlaskClient, box: smtp_server.Box, form: dict[str, str], status: int, problem: str
) -> None:
    refused = _save(owner, box, **form)
    page = html.unescape(refused.text)
    assert refused.status_code == status, page
    assert problem in page
    assert f'value="{form.get("url", URL)}"' in page
    assert PASSWORD not in page
    assert mail_server.get() is None


def test_an_unreachable_server_is_not_stored(owner: FlaskClient) -> None:
    with smtp_server.away() as away:
        refused = _save(owner, away)
    assert refused.status_code == 400
    assert "Connection refused" in refused.text
    assert mail_server.get() is None


def test_a_stored_password_is_encrypted_and_goes_to_no_other_server(
    store: connection.Store, settings: config.Settings
) -> None:
    given = mail_server.MailServer(
        security=setting_values.Security.TLS, host="mail.example", port=465,
        sender=smtp_server.SENDER, url=URL, user="ann", password="very secret",
    )  # fmt: skip
    now = account_holders.here()
    checked, server = mail_server.check(given, settings, now=now)
    assert server.password == "very secret"
    noted = audit_log.Noted(audit_log.Act(sample_threads.ADA, "set-mail"), now)
    mail_server.save(checked, noted)
    mail_server.save(checked, noted)  # As after a lost response
    assert len(audit_log.log(roles.SERVICE)) == 1
    assert "very secret" not in str([*reads.fetch(reads.Query("MailServer"))])
    again = {"password": "", "sender": "other@service.example"}
    _, server = mail_server.check(msgspec.structs.replace(given, **again), settings, now=now)
    assert server.password == "very secret"
    given = msgspec.structs.replace(given, password="")
    for other in ({"host": "evil.example"}, {"port": 587}, {"user": "eve"}):
        with pytest.raises(errors.BadInput, match="password"):
            mail_server.check(msgspec.structs.replace(given, **other), settings, now=now)
