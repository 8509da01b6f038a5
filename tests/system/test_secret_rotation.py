"""After the secret changes, the service accepts earlier tokens, links and hashes as documented.

For each use of the secret in docs/secrets.md, a test creates a value under one secret and presents
it to a service with a different secret. With `SECRET_OLD`, the service accepts the value; without
`SECRET_OLD`, it refuses the value.
"""

import dataclasses
import re
from collections.abc import Callable
from typing import NamedTuple

import flask
import msgspec
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import (
    app as apps,
)
from comments import config, errors
from comments.accounts import accounts, identities, invitations, one_time_links, site_keys
from comments.accounts.oidc import oidc_client, popup_exchange, providers
from comments.accounts.passwords import credentials, totp
from comments.domain import classifier_verdicts, records
from comments.domain.crypto import client_networks, encryption, secret_rotation
from comments.events import safe_http
from comments.moderation import decisions, reports
from comments.moderation.classifiers import registration, site_service
from comments.notifications import (
    double_opt_in,
    moderation_links,  # fmt: skip
    subscriptions,
)
from comments.posting import cast_vote, turnstile_settings
from comments.sites import site_settings
from comments.store import connection, reads, transactions
from comments.web.admin import signed_in
from comments.web.api import api_tokens
from tests.conftest import ROOT
from tests.support.people import (
    account_holders,
    admin_forms,
    api_requests,
    proof_solver,
    provider_login,
    site_tokens,
)
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import OWN, send
from tests.support.people.provider_login import Impostor, Traveller
from tests.support.threads import sample_threads

NEW = "another secret of the tests, as long as it should be"
ROTATED, ALONE = secret_rotation.Secret(NEW, SECRET), secret_rotation.Secret(NEW)
ADDRESS = "ann@example.org"
BOSS = "boss@demo.example"
KEY = {"Idempotency-Key": "0123456789abcdef"}

pytestmark = [
    pytest.mark.usefixtures("quick_passwords", "site"),
    pytest.mark.settings(provider_login.SETTINGS),
]


@dataclasses.dataclass
class Service:
    """A service that runs with one secret."""

    secret: str
    app: flask.Flask

    @property
    def client(self) -> FlaskClient:
        return self.app.test_client()

    def signed_in(self, token: str) -> FlaskClient:
        client = self.app.test_client()
        client.set_cookie(signed_in.COOKIE, token)
        return client


class Services(NamedTuple):
    """Services on one store: before the secret changes, after it, and without the old secret."""

    before: Service
    rotated: Service
    alone: Service


@pytest.fixture
def services(store: connection.Store, settings: config.Settings) -> Services:
    def served(secret: str) -> Service:
        changed = dataclasses.replace(settings, secret=secret)
        return Service(secret, apps.create_app(changed, store))

    return Services(served(SECRET), served(ROTATED), served(ALONE))


# A `Use` creates a value under the old secret. Its `Shown` presents the value and returns the
# response, or whether the service accepted the value.
Shown = Callable[[Service], TestResponse | bool]
Use = Callable[[Service], Shown]


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _guest_token(before: Service) -> Shown:
    posted = api_requests.post(before.client)
    one = api_requests.ONE + posted["comment"]["id"]
    return lambda service: service.client.delete(one, headers=api_requests.bearer(posted))


def _account_token(before: Service) -> Shown:
    ann = account_holders.account("ann")
    token = api_tokens.sign_member(
        api_tokens.Member("demo", ann.id, ann.epoch), secret=before.secret
    )
    path = "/api/v1/sites/demo/author"
    return lambda service: service.client.get(path, headers=_bearer(token))


def _session(before: Service) -> Shown:
    token = account_holders.session(account_holders.account("ann", OWNER).id).token
    return lambda service: service.signed_in(token).get("/admin/account")


def _form(before: Service) -> Shown:
    """Use a form that was open when the secret changed."""
    ann = account_holders.account("ann", OWNER)
    token = account_holders.session(ann.id).token
    form = admin_forms.token_of(before.signed_in(token))
    path = "/admin/account/authenticator/remove"
    return lambda service: send(service.signed_in(token), path, form=form, current=PASSWORD)


def _cursor(before: Service) -> Shown:
    for _ in range(2):
        api_requests.post(before.client)
    cursor = api_requests.answer(before.client.get(f"{api_requests.THREAD}&limit=1"))["cursor"]
    return lambda service: service.client.get(f"{api_requests.THREAD}&limit=1&cursor={cursor}")


def _invitation(before: Service) -> Shown:
    token = account_holders.invite(OWNER, address=ADDRESS, now=now())
    form = {"name": "Ann", "login": "ann", "password": PASSWORD}
    return lambda service: send(service.client, "/admin/welcome", token=token, **form)


def _reset(before: Service) -> Shown:
    token = admin_forms.reset_of(account_holders.account("ann", OWNER))
    sent = {"token": token, "password": "another password"}
    return lambda service: send(service.client, "/admin/reset", **sent)


def _second_factor(before: Service) -> Shown:
    ann, key = account_holders.account("ann", OWNER), totp.secret()
    credentials.set_totp(ann.id, key, 0, secret=before.secret, now=now())
    code = totp.code(key, int(now().timestamp()) // totp.STEP)
    sent = {"login": "ann", "password": PASSWORD, "code": code}
    return lambda service: send(service.client, "/admin/sign-in", **sent)


def _sign_in_by_address(before: Service) -> Shown:
    account_holders.account("ann", OWNER, mail=ADDRESS)
    sent = {"login": ADDRESS.upper(), "password": PASSWORD}
    return lambda service: send(service.client, "/admin/sign-in", **sent)


def _requested_link(before: Service) -> tuple[str, str]:
    """Request a sign-in link; return the requesting page's key and the link."""
    key = one_time_links.new_token()
    address = encryption.seal(ADDRESS, "sign-in link", before.secret, now=now())
    content = msgspec.json.encode({"site": "demo", "address": address}).decode()
    ticket = one_time_links.OneTimeLink(one_time_links.LinkPurpose.SIGN_IN, content)
    issued = one_time_links.issuing(key, ticket, before.secret, now=now(), term=invitations.TERM)
    transactions.transaction(lambda: transactions.apply(issued))
    link = msgspec.json.encode([key, "demo", ADDRESS]).decode()
    return key, encryption.seal(link, "sign-in link", before.secret, now=now())


def _code_of(service: Service, link: str) -> str:
    shown = service.client.post("/sign-in", data={"token": link}, headers=OWN)
    found = re.search(r">([a-z2-7]{4} [a-z2-7]{4})<", shown.text)
    return found[1] if found else ""


def _enter(service: Service, key: str, code: str) -> TestResponse:
    sent = {"key": key, "code": code, "name": "Ann"}
    return service.client.post("/api/v1/sites/demo/sign-in/code", json=sent)


def _sign_in_link(before: Service) -> Shown:
    key, link = _requested_link(before)
    return lambda service: _enter(service, key, _code_of(service, link))


def _sign_in_code(before: Service) -> Shown:
    key, link = _requested_link(before)
    code = _code_of(before, link)
    assert code
    return lambda service: _enter(service, key, code)


def _popup_code(before: Service) -> Shown:
    person = oidc_client.ProviderUser(
        identities.of_provider("oidc/https://acme.example", "ann"), "Ann"
    )
    challenge = provider_login.challenge_of()
    code = popup_exchange.issue(person, "demo", challenge, secret=before.secret, now=now())
    sent = {"verifier": provider_login.VERIFIER, "code": code, "name": "Ann"}
    path = "/api/v1/sites/demo/sign-in/provider"
    return lambda service: service.client.post(path, json=sent)


def _link(before: Service) -> str:
    request = double_opt_in.SubscriptionRequest(ADDRESS, "demo", "", "g:ann", replies=True)
    text = msgspec.json.encode(request).decode()
    return encryption.seal(text, "confirm", before.secret, now=now())


def _confirmed(service: Service, token: str) -> TestResponse:
    return service.client.post("/subscriptions/confirm", data={"token": token})


def _form_token_of(service: Service, link: str) -> str:
    page = service.client.get(f"/subscriptions/confirm?token={link}").text
    found = re.search(r'name="token"[^>]* value="([^"]+)"', page)
    return found[1] if found else ""


def _confirmation(before: Service) -> Shown:
    link = _link(before)
    return lambda service: _confirmed(service, _form_token_of(service, link))


def _form_token(before: Service) -> Shown:
    """Use a confirmation page that was open when the secret changed."""
    token = _form_token_of(before, _link(before))
    assert token
    return lambda service: _confirmed(service, token)


def test_a_link_used_before_the_change_stays_used_after_it(services: Services) -> None:
    link = _link(services.before)
    tokens = [_form_token_of(services.before, link) for _ in range(2)]
    assert _is_accepted(_confirmed(services.before, tokens[0]))
    assert not _is_accepted(_confirmed(services.rotated, tokens[1]))


def _unsubscribing(before: Service) -> Shown:
    link = double_opt_in.unsubscribe_link(
        double_opt_in.Unsubscription("a" * 26, ("replies:b",)), before.secret
    )
    return lambda service: service.client.post(f"/subscriptions/unsubscribe?token={link}")


def _moderation_link(before: Service) -> Shown:
    site_settings.change("demo", moderators=[BOSS])
    posted = api_requests.post(before.client)["comment"]["id"]
    actor = records.Actor("cli", "Ada")
    held = decisions.decide("demo", posted, records.Verb.HOLD, actor, now=now())
    link = moderation_links.link(held, BOSS, secret=before.secret, now=now())
    return lambda service: service.client.get(f"/decisions?token={link}")


def _proof(before: Service) -> Shown:
    site_settings.change("demo", guard={"proof_of_work": 10})
    proof = proof_solver.proof(before.client)
    sent = {"name": "Ann", "body": "Hello", "proof": proof}
    return lambda service: service.client.post(api_requests.THREAD, json=sent)


def _question(before: Service) -> Shown:
    name = site_service.name("demo", "a" * 26, 1, before.secret)

    def shown(service: Service) -> bool:
        try:
            return site_service.named(name, "demo", service.secret) == ("a" * 26, 1)
        except errors.NotFound:
            return False

    return shown


def _site_token(before: Service) -> Shown:
    token = site_tokens.token(site_tokens.share())
    path = "/api/v1/sites/demo/session"
    return lambda service: service.client.post(path, json={"token": token})


def _opens(open_it: Callable[[str], object]) -> Shown:
    def shown(service: Service) -> bool:
        try:
            open_it(service.secret)
        except errors.BadLink:
            return False
        return True

    return shown


def _by(service: Service, settings: config.Settings = provider_login.SETTINGS) -> registration.By:
    changed = dataclasses.replace(settings, secret=service.secret)
    return registration.By(records.Actor("cli", "Ada"), now(), changed)


def _adviser_secret(before: Service) -> Shown:
    away = safe_http.HttpClient(resolver=lambda _host: ["93.184.215.14"])
    url = "https://review.example/in"
    registration.set_webhook("demo", url, registration.Terms(holds=False), _by(before), away)
    return _opens(
        lambda secret: registration.secrets_of(registration.every("demo")[0], secret, now=now())
    )


def _turnstile_secret(before: Service) -> Shown:
    given = turnstile_settings.Given("sitekey", "s3cret")
    turnstile_settings.set_up("demo", given, settings=_by(before).settings, now=now())

    def opened(secret: str) -> None:
        asked = site_settings.get("demo").turnstile
        assert asked is not None
        assert encryption.unseal(asked.secret, "turnstile", secret, now=now()) == "s3cret"

    return _opens(opened)


def _site_key(before: Service) -> Shown:
    site_tokens.share()
    return _opens(lambda secret: site_keys.opened(site_keys.every("demo")[0], secret, now=now()))


def _provider_secret(before: Service) -> Shown:
    given = providers.Registration("acme", "Acme", "https://acme.example", "client", "s3cret")
    providers.add(providers.checked(given, before.secret, now=now()))
    return _opens(lambda secret: providers.opened(providers.every()[0], secret, now=now()))


def _account_address(before: Service) -> Shown:
    ann = account_holders.account("ann", mail=ADDRESS)

    def opened(secret: str) -> None:
        found = accounts.get(ann.id)
        assert found is not None
        assert accounts.address_of(found, secret, now=now()) == ADDRESS

    return _opens(opened)


def _subscriber(before: Service) -> str:
    who = double_opt_in.subscriber_of(ADDRESS, before.secret)
    address = encryption.seal(ADDRESS, "address", before.secret, now=now())
    wanted = subscriptions.SubscriptionTarget("demo", "", "g:ann", replies=True)
    subscriptions.subscribe(who, address, wanted, now=now())
    return who


def _subscriber_address(before: Service) -> Shown:
    who = _subscriber(before)

    def opened(secret: str) -> None:
        stored = subscriptions.address_of(who)
        assert double_opt_in.address(stored, secret=secret, now=now()) == ADDRESS

    return _opens(opened)


def _sender(before: Service) -> Shown:
    text = encryption.seal("a network", classifier_verdicts.SENDER, before.secret, now=now())
    return _opens(
        lambda secret: encryption.unseal(text, classifier_verdicts.SENDER, secret, now=now())
    )


CARRIED: list[Use] = [
    _guest_token, _account_token, _session, _form, _cursor, _invitation, _reset, _second_factor,
    _sign_in_by_address, _sign_in_link, _sign_in_code, _popup_code, _confirmation, _form_token,
    _unsubscribing, _moderation_link, _proof, _question, _site_token, _sender,
]  # fmt: skip
STORED: list[Use] = [
    _second_factor, _adviser_secret, _turnstile_secret, _site_key, _provider_secret,
    _account_address, _sign_in_by_address, _subscriber_address,
]  # fmt: skip
USES = list(dict.fromkeys([*CARRIED, *STORED]))


def _is_accepted(answer: TestResponse | bool) -> bool:
    if isinstance(answer, bool):
        return answer
    return answer.status_code < 400 and not (answer.location or "").endswith("/sign-in")


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__.strip("_"))
@pytest.mark.parametrize("now_with", ["rotated", "alone"])
def test_the_old_secrets_tokens_are_accepted_while_it_is_configured(
    services: Services, use: Use, now_with: str
) -> None:
    shown = use(services.before)
    assert _is_accepted(shown(getattr(services, now_with))) == (now_with == "rotated")


CARRIED_BY_CLIENTS = [
    _guest_token,
    _cursor,
    _moderation_link,
    _proof,
    _account_token,
    _unsubscribing,
]


@pytest.mark.parametrize("use", CARRIED_BY_CLIENTS, ids=lambda use: use.__name__.strip("_"))
def test_the_new_secrets_tokens_need_no_old_one(services: Services, use: Use) -> None:
    assert _is_accepted(use(services.rotated)(services.alone))


def test_an_account_known_by_address_stays_the_same_and_is_rehashed(services: Services) -> None:
    """The product rehashes an identity when its owner signs in, so no one gets a second account."""
    key, link = _requested_link(services.before)
    first = api_requests.answer(_enter(services.before, key, _code_of(services.before, link)))
    ids = accounts.by_identity(identities.of_address(ADDRESS), SECRET)
    for service in (services.rotated, services.alone):
        key, link = _requested_link(service)
        entered = _enter(service, key, _code_of(service, link))
        assert entered.status_code == 200
        found = accounts.by_identity(identities.of_address(ADDRESS), service.secret)
        assert found is not None
        assert found == ids
    assert first["name"] == "Ann"
    assert len(list(reads.fetch(reads.Query("Account")))) == 1
    assert len(list(reads.fetch(reads.Query("Identity")))) == 1


def test_an_address_from_before_the_change_cannot_get_a_second_account(services: Services) -> None:
    account_holders.account("ann", OWNER, mail=ADDRESS)
    token = invitations.invite(
        invitations.Invitation((OWNER,), ADDRESS), secret=services.rotated.secret, now=now()
    )
    form = {"name": "Eve", "login": "eve", "password": PASSWORD}
    refused = send(services.rotated.client, "/admin/welcome", token=token, **form)
    assert refused.status_code == 409


def test_a_providers_user_signs_in_to_the_account_linked_before_the_change(
    services: Services, provider: Impostor
) -> None:
    ann = account_holders.account("ann", OWNER)
    traveller = Traveller(services.before.app, provider)
    traveller.sign_in()
    assert traveller.link().status_code in {200, 303}
    for service in (services.rotated, services.alone):
        # The provider's client secret is encrypted under the old secret. Renew the client secret,
        # because this test is about identities.
        providers.renew(services.rotated.secret)
        back = Traveller(service.app, provider).travel("/admin/sign-in/provider", provider="acme")
        assert back.status_code in {200, 303}, back.text
        assert accounts.staff() == [accounts.get(ann.id)]


def test_a_provider_login_begun_before_the_change_completes_after_it(
    services: Services, provider: Impostor
) -> None:
    traveller = Traveller(services.before.app, provider)
    challenge = provider_login.challenge_of()
    form = {"provider": "acme", "origin": provider_login.ORIGIN, "challenge": challenge}
    way = traveller.way("/sign-in/sites/demo", **form)
    cookies = traveller.client._cookies
    traveller.client = services.rotated.client
    traveller.client._cookies = cookies
    code = provider_login.code_of(traveller.back(way))
    sent = {"verifier": provider_login.VERIFIER, "code": code, "name": "Ann"}
    entered = services.rotated.client.post("/api/v1/sites/demo/sign-in/provider", json=sent)
    assert entered.status_code == 200


@pytest.mark.parametrize("sent", [{"name": "Ann", "body": "Hello"}])
def test_a_repeated_post_is_stored_once(services: Services, sent: dict) -> None:
    answers = [
        service.client.post(api_requests.THREAD, json=sent, headers=KEY)
        for service in (services.before, services.rotated, services.rotated)
    ]
    found = [api_requests.answer(each) for each in answers]
    assert len({each["comment"]["id"] for each in found}) == 1
    assert len(api_requests.listed(services.rotated.client)) == 1
    # The author is also the same, so the token from the retry may change the comment.
    one = api_requests.ONE + found[0]["comment"]["id"]
    assert (
        services.rotated.client.delete(one, headers=api_requests.bearer(found[-1])).status_code
        == 200
    )


def test_a_repeated_vote_is_stored_once(services: Services) -> None:
    one = api_requests.post(services.before.client)["comment"]["id"]
    voters = [
        services_one.client.put(f"{api_requests.ONE}{one}/vote", json={"value": 1}, headers=KEY)
        for services_one in (services.before, services.rotated)
    ]
    assert [each.status_code for each in voters] == [200, 200]
    assert len(list(reads.fetch(reads.Query("Vote")))) == 1


def test_a_network_gets_no_more_votes_by_a_change_of_the_secret(services: Services) -> None:
    one = api_requests.post(services.before.client)["comment"]["id"]
    limit = provider_login.SETTINGS.voters_per_network

    def vote(service: Service, number: int) -> None:
        changed = dataclasses.replace(provider_login.SETTINGS, secret=service.secret)
        request = sample_threads.request(settings=changed, now=now(), network="192.0.2.7")
        cast_vote.vote(one, f"g:{number}", 1, request)

    for number in range(limit):
        vote(services.before, number)
    vote(services.rotated, 0)  # repeats a vote
    with pytest.raises(errors.TooMany):
        vote(services.rotated, limit)
    # Without the old secret, the service cannot recognize the network's earlier votes.
    vote(services.alone, limit)


def test_a_reporter_counts_once(services: Services) -> None:
    one = api_requests.post(services.before.client)["comment"]["id"]
    sent = {"reason": "spam"}
    for service in (services.before, services.rotated):
        assert service.client.post(f"{api_requests.ONE}{one}/report", json=sent).status_code == 202
    assert reports.of([one])[one].open == 1


def test_an_earlier_subscriber_is_found_confirmed_and_deleted(services: Services) -> None:
    who = _subscriber(services.before)
    shown = _confirmation(services.rotated)(services.rotated)
    assert _is_accepted(shown)
    assert subscriptions.known(double_opt_in.ids_of(ADDRESS, ROTATED)) == who
    assert len(list(reads.fetch(reads.Query("Subscriber")))) == 1
    assert double_opt_in.forget(ADDRESS, ROTATED, now=now()) == 1
    assert list(reads.fetch(reads.Query("Subscriber"))) == []


def test_a_subscriber_is_deleted_after_the_old_secret_is_removed(services: Services) -> None:
    _subscriber(services.before)
    _renewed(services.rotated)
    assert double_opt_in.forget("bob@example.org", NEW, now=now()) == 0
    assert double_opt_in.forget(ADDRESS.upper(), NEW, now=now()) == 1
    assert list(reads.fetch(reads.Query("Subscriber"))) == []


def _renewed(service: Service) -> str:
    done = service.app.test_cli_runner().invoke(args=("secret", "renew"))
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("use", STORED, ids=lambda use: use.__name__.strip("_"))
def test_the_renew_command_reencrypts_stored_values_so_the_old_secret_can_be_removed(
    services: Services, use: Use
) -> None:
    shown = use(services.before)
    assert "Encrypted 1 row under SECRET." in _renewed(services.rotated)
    assert "Encrypted 0 rows under SECRET." in _renewed(services.rotated), (
        "a repeat must change nothing"
    )
    assert _is_accepted(shown(services.alone))


def test_the_command_reports_subscribers_that_need_the_old_secret(services: Services) -> None:
    _subscriber(services.before)
    assert "1 subscriber can still be found only with SECRET_OLD" in _renewed(services.rotated)


def test_without_an_old_secret_the_command_says_what_is_missing(services: Services) -> None:
    done = services.alone.app.test_cli_runner().invoke(args=("secret", "renew"))
    assert done.exit_code == 1
    assert "Set SECRET_OLD" in done.output


@pytest.mark.parametrize("use", [_guest_token, _cursor, _session], ids=["token", "cursor", "key"])
def test_processes_change_their_secret_one_after_the_other(services: Services, use: Use) -> None:
    """First, all processes accept the new secret; then, each process begins to use it."""
    early = Service(
        secret_rotation.Secret(SECRET, NEW),
        apps.create_app(
            dataclasses.replace(
                provider_login.SETTINGS, secret=secret_rotation.Secret(SECRET, NEW)
            ),
            apps.context.of(services.before.app).store,  # type: ignore[attr-defined]
        ),
    )
    if use is not _session:
        assert _is_accepted(use(services.rotated)(early))
    assert _is_accepted(use(early)(services.rotated))


def test_networks_are_hashed_with_the_current_secret_alone() -> None:
    assert client_networks.digest(ROTATED, "x", "y") == client_networks.digest(NEW, "x", "y")


def test_every_module_that_uses_the_secret_is_in_the_table() -> None:
    """Each use of the secret needs a row that says what happens when the secret changes."""
    using = re.compile(
        r"keyed_hashes\.(?:keyed|every|is_one)\(|encryption\.(?:seal|unseal)\("
        r"|client_networks\.digest\(|secret_rotation\.accepted\(|\(secret\.encode\(\)\)|_digest\(self\.secret\)"
    )
    package = ROOT / "comments"
    own = {"keyed_hashes", "encryption", "secret_rotation", "secret_commands"}
    found = {
        path.stem
        for path in package.rglob("*.py")
        if using.search(path.read_text(encoding="utf-8"))
    }
    table = (ROOT / "docs" / "secrets.md").read_text(encoding="utf-8")
    listed = set(
        re.findall(r"`([a-z_]+)`", " ".join(re.findall(r"^\| [^|]+\|([^|]+)", table, re.MULTILINE)))
    )
    missing = found - own - listed
    assert not missing, sorted(missing)
    assert listed <= {path.stem for path in package.rglob("*.py")}
