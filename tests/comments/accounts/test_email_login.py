"""E-mail login needs the mailbox and the page that requested the login, within a time limit."""

import dataclasses
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeVar

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config, errors
from comments.accounts import accounts, reader_accounts
from comments.accounts.links import email_login, typed_codes
from comments.domain import records
from comments.limits import login_mail_rush, post_limits, proof_policy
from comments.sites import site_settings
from comments.store import connection, reads
from comments.upkeep import scheduler, wiring
from datastore_emulator import inprocess, testing
from tests.support import programs
from tests.support.histories import counter_oracle
from tests.support.outside import mail_server
from tests.support.people import account_holders, api_requests, proof_solver
from tests.support.people.account_holders import PASSWORD, SECRET, here
from tests.support.threads import sample_threads

pytestmark = pytest.mark.settings(mail=True)

T = TypeVar("T")

ADDRESS = "ann@example.org"
ASK = "/api/v1/sites/demo/sign-in"
OWN = {"Sec-Fetch-Site": "same-origin"}


class Mail:
    """A helper that requests e-mail logins and reads the resulting mail."""

    def __init__(self, box: mail_server.Box, settings: config.Settings, site: records.Site) -> None:
        self.box = box
        self.settings = settings
        self.site = site
        self.now = here()
        self._asked = 0

    def ask(self, email: str = ADDRESS, *, network: str = "") -> str:
        self._asked += 1
        return email_login.ask(
            email,
            self.site,
            network=network or f"192.0.2.{self._asked}",
            settings=self.settings,
            now=self.now,
        )

    def deliver(self) -> None:
        made = scheduler.Scheduler(handlers=wiring.handlers(self.settings))
        while events := counter_oracle.events():
            made.deliver(events)

    def link(self) -> str:
        self.deliver()
        found = re.search(r"https://service\.example/sign-in#(\S+)", self.box.text())
        assert found
        return found[1]

    def code(self) -> str:
        return email_login.code(self.link(), secret=SECRET, now=self.now)

    def enter(
        self, key: str, code: str, name: str = "Ann", *, site: str = "demo", later: float = 0
    ) -> accounts.Account:
        now = self.now + timedelta(minutes=later)
        return email_login.sign_in(key, code, name, site, secret=SECRET, now=now).account


@pytest.fixture
def mail(
    store: connection.Store, box: mail_server.Box, settings: config.Settings, site: records.Site
) -> Mail:
    return Mail(box, settings, site)


def test_the_page_that_requested_the_link_is_signed_in_with_the_code(
    client: FlaskClient, mail: Mail, box: mail_server.Box
) -> None:
    asked = client.post(ASK, json={"email": ADDRESS})
    assert asked.status_code == 202
    assert asked.headers["Cache-Control"] == "private, no-store"
    link = mail.link()
    assert box.recipients == [ADDRESS]
    assert "demo" in box.text()

    # A mail scanner opens the link, which changes nothing.
    assert client.get("/sign-in").status_code == 200
    shown = client.post("/sign-in", data={"token": link}, headers=OWN)
    found = re.search(r"<strong[^>]*>([a-z2-7]{4} [a-z2-7]{4})</strong>", shown.text)
    assert found
    sent = {"key": api_requests.answer(asked)["key"], "code": found[1].upper(), "name": "Ann"}
    entered = api_requests.answer(client.post(f"{ASK}/code", json=sent))
    assert entered["name"] == "Ann"
    posted = client.post(
        api_requests.THREAD, json={"name": "x", "body": "b"}, headers=api_requests.bearer(entered)
    )
    assert api_requests.answer(posted)["comment"]["author"]["name"] == "Ann"
    # The login works only once, because it uses up the code and the link.
    assert api_requests.refused(client.post(f"{ASK}/code", json=sent), 401) == "code-expired"
    assert client.post("/sign-in", data={"token": link}, headers=OWN).status_code == 400


def test_the_same_address_is_the_same_account_whose_name_may_change(mail: Mail) -> None:
    found = []
    for address, name in ((ADDRESS, "Ann"), (ADDRESS.upper(), "Ann B"), ("b@example.org", "Bob")):
        key = mail.ask(address)
        found.append(mail.enter(key, mail.code(), name))
    assert found[0].id == found[1].id != found[2].id
    assert [each.name for each in found] == ["Ann", "Ann B", "Bob"]


def test_an_account_with_a_role_keeps_its_name_and_gets_only_a_readers_token(mail: Mail) -> None:
    owner = account_holders.account("ann", account_holders.OWNER, mail=ADDRESS)
    key = mail.ask()
    entered = mail.enter(key, mail.code(), "Somebody else")
    assert entered == owner
    assert account_holders.sign_in("ann", PASSWORD).account == owner


def test_a_code_is_valid_for_its_key_site_and_half_hour(mail: Mail) -> None:
    site_settings.add(
        "blog", ["https://blog.example"], scheme=sample_threads.SETTINGS.scheme, now=mail.now
    )
    other = mail.ask("eve@example.org")
    mail.code()
    key = mail.ask()
    code = mail.code()
    minutes = email_login.TERM.total_seconds() / 60
    for wrong in (
        lambda: mail.enter(other, code),
        lambda: mail.enter(key, code, site="blog"),
        lambda: mail.enter(key, code, later=minutes),
        lambda: mail.enter("x" * 43, code),
        lambda: mail.enter("", code),
        lambda: mail.enter(account_holders.invite(account_holders.OWNER, now=mail.now), code),
    ):
        with pytest.raises(reader_accounts.Refused):
            wrong()
    for link in ("", "x", mail.link()[:-8]):
        with pytest.raises(errors.BadLink):
            email_login.code(link, secret=SECRET, now=mail.now)
    with pytest.raises(errors.BadLink):
        email_login.code(mail.link(), secret=SECRET, now=mail.now + email_login.TERM * 2)
    assert mail.enter(key, f" {code[:4]}-{code[5:]} ").name == "Ann"


def test_a_key_without_its_code_is_worthless(mail: Mail) -> None:
    """An attacker who requests a login for a victim's address cannot sign in with the key alone."""
    key = mail.ask()
    for guess in ("", "        ", "aaaa aaaa"):
        with pytest.raises(reader_accounts.Refused):
            mail.enter(key, guess)


def test_only_the_newest_code_is_valid(mail: Mail) -> None:
    key = mail.ask()
    first, second = mail.code(), mail.code()
    assert first != second
    with pytest.raises(reader_accounts.Refused):
        mail.enter(key, first)
    assert mail.enter(key, second)


def _at_once(store: connection.Store, count: int, act: Callable[[], T]) -> list[T]:
    """Run `act` in `count` concurrent threads; return the results."""
    start = threading.Barrier(count)

    def run(_: int) -> T:
        with store.context():
            start.wait(programs.PATIENCE)
            return act()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_concurrent_guesses_are_counted_one_by_one(
    open_store: connection.Store,
    box: mail_server.Box,
    settings: config.Settings,
    site: records.Site,
) -> None:
    with open_store.context():
        mail = Mail(box, settings, site)
        key = mail.ask()
        code = mail.code()

    def guess() -> str:
        with pytest.raises(reader_accounts.Refused) as refused:
            mail.enter(key, "aaaa aaaa")
        return refused.value.code

    codes = _at_once(open_store, 20, guess)
    assert codes.count("wrong-code") == typed_codes.TRIES
    # After too many wrong codes, even the right code is refused.
    with open_store.context(), pytest.raises(reader_accounts.Refused, match="too-many-guesses"):
        mail.enter(key, code)


def test_one_of_many_concurrent_uses_of_a_code_succeeds(
    open_store: connection.Store,
    box: mail_server.Box,
    settings: config.Settings,
    site: records.Site,
) -> None:
    with open_store.context():
        mail = Mail(box, settings, site)
        key = mail.ask()
        code = mail.code()

    def use() -> object:
        try:
            return mail.enter(key, code)
        except reader_accounts.Refused:
            return None

    assert len([each for each in _at_once(open_store, 8, use) if each]) == 1


def test_the_response_and_the_cost_are_the_same_for_every_address(
    mail: Mail, engine: inprocess.Engine, box: mail_server.Box
) -> None:
    account_holders.account("ann", mail=ADDRESS)
    costs = []
    for address in (ADDRESS, "nobody@example.org"):
        with testing.meter(engine) as cost:
            mail.ask(address)
        costs.append((cost.reads, cost.writes, cost.small))
    assert costs[0] == costs[1]
    mail.deliver()
    assert sorted(box.recipients) == [ADDRESS, "nobody@example.org"]


def test_mails_per_address_and_requests_per_network_are_limited(
    mail: Mail, box: mail_server.Box
) -> None:
    for _ in range(email_login.PER_ADDRESS.most + 3):
        mail.ask()
    mail.deliver()
    assert len(box.taken) == email_login.PER_ADDRESS.most
    for number in range(email_login.PER_NETWORK.most):
        mail.ask(f"n{number}@example.org", network="198.51.100.1")
    with pytest.raises(errors.TooMany) as refused:
        mail.ask("another@example.org", network="198.51.100.1")
    assert refused.value.retry_after > 0


ONE_MAILBOX = [
    "victim@gmail.com", "victim+1@gmail.com", "VICTIM+two@gmail.com", "v.ictim@gmail.com",
    "v.i.c.t.i.m+three@GMAIL.com", "victim+4@googlemail.com", "vic.tim+5@googlemail.com",
    "victim+@gmail.com",
]  # fmt: skip


def test_all_spellings_of_a_mailbox_share_one_limit(
    client: FlaskClient, mail: Mail, box: mail_server.Box
) -> None:
    for number, address in enumerate(ONE_MAILBOX):
        peer = {"REMOTE_ADDR": f"192.0.2.{number}"}
        answer = client.post(ASK, json={"email": address}, environ_overrides=peer)
        # The response is neutral: callers cannot tell that the last requests sent no mail.
        assert answer.status_code == 202
        assert set(api_requests.answer(answer)) == {"key", "expires"}
    mail.deliver()
    assert len(ONE_MAILBOX) > len(box.taken) == email_login.PER_ADDRESS.most


@pytest.fixture
def rush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the thresholds to three mails per hour and domain and five mails per hour in total."""
    monkeypatch.setattr(login_mail_rush, "SHARES", 1)
    monkeypatch.setattr(login_mail_rush, "PER_DOMAIN", login_mail_rush.PER_DOMAIN._replace(most=3))
    monkeypatch.setattr(
        login_mail_rush, "PER_SERVICE", login_mail_rush.PER_SERVICE._replace(most=5)
    )
    monkeypatch.setattr(proof_policy, "LEAST", 10)


def _asked(client: FlaskClient, email: str, proof: str = "") -> TestResponse:
    sent = {"email": email, **({"proof": proof} if proof else {})}
    return client.post(ASK, json=sent, environ_overrides={"REMOTE_ADDR": f"10.0.0.{len(email)}"})


def _proof(client: FlaskClient, purpose: str = "sign-in") -> str:
    return proof_solver.solved(
        api_requests.answer(client.get(f"{proof_solver.CHALLENGE}?purpose={purpose}"))
    )


@pytest.mark.usefixtures("rush")
def test_a_rush_on_a_domain_requires_a_proof_and_refuses_nobody(
    client: FlaskClient, mail: Mail, box: mail_server.Box, caplog: pytest.LogCaptureFixture
) -> None:
    for length in range(1, 4):
        assert _asked(client, f"{'a' * length}@example.org").status_code == 202
    refused = _asked(client, "dora@Example.org")
    assert api_requests.refused(refused, 403) == "proof-required"
    assert "/api/v1/sites/demo/challenge?purpose=sign-in" in refused.get_json()["detail"]
    assert _asked(client, "ann@elsewhere.example").status_code == 202
    assert api_requests.refused(
        _asked(client, "dora@example.org", _proof(client, "vote")), 403
    ) == ("proof-invalid")
    proof = _proof(client)
    assert _asked(client, "dora@example.org", proof).status_code == 202
    assert api_requests.refused(_asked(client, "emily@example.org", proof), 403) == "proof-spent"
    assert _asked(client, "emily@example.org", _proof(client)).status_code == 202
    mail.deliver()
    assert {"ann@elsewhere.example", "dora@example.org", "emily@example.org"} < set(box.recipients)
    (said,) = [each for each in caplog.messages if "of a domain" in each]
    assert "requires a proof of work" in said
    assert "example" not in caplog.text


@pytest.mark.usefixtures("rush")
def test_a_rush_on_the_service_requires_a_proof_for_every_mail(
    client: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    for length in range(1, 6):
        assert _asked(client, f"ann@{'b' * length}.example").status_code == 202
    assert api_requests.refused(_asked(client, "ann@another.example"), 403) == "proof-required"
    assert _asked(client, "ann@another.example", _proof(client)).status_code == 202
    assert sum("of the service" in each for each in caplog.messages) == 1


@pytest.mark.usefixtures("rush")
def test_a_rush_ends_after_an_hour(mail: Mail) -> None:
    for number in range(3):
        mail.ask(f"a{number}@example.org")
    with pytest.raises(errors.Forbidden):
        mail.ask("b@example.org")
    mail.now += login_mail_rush.HOUR
    mail.ask("b@example.org")


def test_a_mail_in_a_rush_takes_more_work_than_a_post(settings: config.Settings) -> None:
    site = records.Site("demo", (), "", 2)
    for most in (0, 1_000, 100_000, 2_000_000):
        given = dataclasses.replace(settings, proof_of_work=most)
        works = [
            proof_policy.work(sample_threads.request(site, settings=given, now=here()), purpose)
            for purpose in (
                proof_policy.ChallengePurpose.POST,
                proof_policy.ChallengePurpose.SIGN_IN,
            )
        ]
        assert works[0] < works[1] or works[1] == post_limits.HARDEST


def test_nothing_readable_of_a_login_is_stored(mail: Mail) -> None:
    key = mail.ask()
    rows = [
        str(row)
        for kind in ("Ticket", "Event", "RateBucket")
        for row in reads.fetch(reads.Query(kind))
    ]
    code = mail.code()
    mail.enter(key, code)
    rows += [
        str(row)
        for kind in ("Ticket", "Account", "Identity")
        for row in reads.fetch(reads.Query(kind))
    ]
    for secret in (ADDRESS, "example.org", key, code, code.replace(" ", "")):
        assert secret not in "".join(rows)


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"email": "ann"}, "email"),
        ({"email": "a@example.org, b@example.org"}, "email"),
        ({"email": ""}, "email"),
        ({"email": ADDRESS, "name": "x"}, "name"),
        ({}, "email"),
    ],
)
def test_an_invalid_address_is_refused(client: FlaskClient, sent: dict, field: str) -> None:
    api_requests.refused(client.post(ASK, json=sent), 400, field)


def test_an_invalid_name_does_not_use_up_the_code(mail: Mail) -> None:
    key = mail.ask()
    code = mail.code()
    for name in ("", "Moderator", "x" * 200):
        with pytest.raises(errors.BadInput):
            mail.enter(key, code, name)
    assert mail.enter(key, code)


def test_a_forged_host_is_in_no_mail(client: FlaskClient, mail: Mail) -> None:
    evil = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    assert client.post(ASK, json={"email": ADDRESS}, headers=evil).status_code == 202
    assert mail.link()
    assert "evil" not in mail.box.taken[0][1].as_string()
    assert "evil" not in mail.box.text()


def test_a_foreign_page_can_neither_request_nor_show_a_code(
    client: FlaskClient, mail: Mail
) -> None:
    evil = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    api_requests.refused(client.post(ASK, json={"email": ADDRESS}, headers=evil), 403)
    mail.ask()
    shown = client.post("/sign-in", data={"token": mail.link()}, headers=evil)
    assert shown.status_code == 403


@pytest.mark.settings
class TestWithoutMail:
    def test_it_is_not_offered(self, client: FlaskClient) -> None:
        assert api_requests.refused(client.post(ASK, json={"email": ADDRESS}), 409) == "no-mail"
