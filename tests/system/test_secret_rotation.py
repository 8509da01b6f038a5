"""After the secret changes, the service accepts earlier tokens, links and hashes as documented.

For each use of the secret in docs/secrets.md, a test creates a value under one secret and presents
it to a service with a different secret. With `SECRET_OLD`, the service accepts the value; without
`SECRET_OLD`, it refuses the value.
"""

import dataclasses
import re

import pytest

from comments import (
    app as apps,
)
from comments import config, errors
from comments.accounts import accounts, identities
from comments.accounts.links import invitations
from comments.accounts.oidc import providers
from comments.domain.crypto import client_networks, secret_rotation
from comments.moderation import reports
from comments.notifications import (
    double_opt_in,
    subscriptions,
)
from comments.posting import cast_vote
from comments.store import connection, reads
from tests.conftest import ROOT
from tests.support.people import (
    account_holders,
    api_requests,
    provider_login,
    secret_uses,
)
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import send
from tests.support.people.provider_login import Impostor, Traveller
from tests.support.people.secret_uses import ADDRESS, ALONE, NEW, ROTATED, Service, Services, Use
from tests.support.threads import sample_threads

KEY = {"Idempotency-Key": "0123456789abcdef"}


pytestmark = [
    pytest.mark.usefixtures("quick_passwords", "site"),
    pytest.mark.settings(provider_login.SETTINGS),
]


@pytest.fixture
def services(store: connection.Store, settings: config.Settings) -> Services:
    def served(secret: str) -> Service:
        changed = dataclasses.replace(settings, secret=secret)
        return Service(secret, apps.create_app(changed, store))

    return Services(served(SECRET), served(ROTATED), served(ALONE))


def test_a_link_used_before_the_change_stays_used_after_it(services: Services) -> None:
    link = secret_uses.link(services.before)
    tokens = [secret_uses.form_token_of(services.before, link) for _ in range(2)]
    assert secret_uses.is_accepted(secret_uses.confirmed(services.before, tokens[0]))
    assert not secret_uses.is_accepted(secret_uses.confirmed(services.rotated, tokens[1]))


@pytest.mark.parametrize("use", secret_uses.USES, ids=lambda use: use.__name__)
@pytest.mark.parametrize("now_with", ["rotated", "alone"])
def test_the_old_secrets_tokens_are_accepted_while_it_is_configured(
    services: Services, use: Use, now_with: str
) -> None:
    shown = use(services.before)
    assert secret_uses.is_accepted(shown(getattr(services, now_with))) == (now_with == "rotated")


@pytest.mark.parametrize("use", secret_uses.CARRIED_BY_CLIENTS, ids=lambda use: use.__name__)
def test_the_new_secrets_tokens_need_no_old_one(services: Services, use: Use) -> None:
    assert secret_uses.is_accepted(use(services.rotated)(services.alone))


def test_an_account_known_by_address_stays_the_same_and_is_rehashed(services: Services) -> None:
    """The product rehashes an identity when its owner signs in, so no one gets a second account."""
    key, link = secret_uses.requested_link(services.before)
    first = api_requests.answer(
        secret_uses.enter(services.before, key, secret_uses.code_of(services.before, link))
    )
    ids = accounts.by_identity(identities.of_address(ADDRESS), SECRET)
    for service in (services.rotated, services.alone):
        key, link = secret_uses.requested_link(service)
        entered = secret_uses.enter(service, key, secret_uses.code_of(service, link))
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
    vote(services.rotated, 0)  # Repeats a vote
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
    who = secret_uses.subscriber(services.before)
    shown = secret_uses.confirmation(services.rotated)(services.rotated)
    assert secret_uses.is_accepted(shown)
    assert subscriptions.stored_id(double_opt_in.ids_of(ADDRESS, ROTATED)) == who
    assert len(list(reads.fetch(reads.Query("Subscriber")))) == 1
    assert double_opt_in.forget(ADDRESS, ROTATED, now=now()) == 1
    assert list(reads.fetch(reads.Query("Subscriber"))) == []


def test_a_subscriber_is_deleted_after_the_old_secret_is_removed(services: Services) -> None:
    secret_uses.subscriber(services.before)
    _renewed(services.rotated)
    assert double_opt_in.forget("bob@example.org", NEW, now=now()) == 0
    assert double_opt_in.forget(ADDRESS.upper(), NEW, now=now()) == 1
    assert list(reads.fetch(reads.Query("Subscriber"))) == []


def _renewed(service: Service) -> str:
    done = service.app.test_cli_runner().invoke(args=("secret", "renew"))
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("use", secret_uses.STORED, ids=lambda use: use.__name__)
def test_the_renew_command_reencrypts_stored_values_so_the_old_secret_can_be_removed(
    services: Services, use: Use
) -> None:
    shown = use(services.before)
    assert "Encrypted 1 row under SECRET." in _renewed(services.rotated)
    assert "Encrypted 0 rows under SECRET." in _renewed(services.rotated), (
        "a repeat must change nothing"
    )
    assert secret_uses.is_accepted(shown(services.alone))


def test_the_command_reports_subscribers_that_need_the_old_secret(services: Services) -> None:
    secret_uses.subscriber(services.before)
    assert "1 subscriber can still be found only with SECRET_OLD" in _renewed(services.rotated)


def test_without_an_old_secret_the_command_says_what_is_missing(services: Services) -> None:
    done = services.alone.app.test_cli_runner().invoke(args=("secret", "renew"))
    assert done.exit_code == 1
    assert "Set SECRET_OLD" in done.output


@pytest.mark.parametrize(
    "use",
    [secret_uses.guest_token, secret_uses.cursor, secret_uses.session],
    ids=["token", "cursor", "key"],
)
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
    if use is not secret_uses.session:
        assert secret_uses.is_accepted(use(services.rotated)(early))
    assert secret_uses.is_accepted(use(early)(services.rotated))


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
