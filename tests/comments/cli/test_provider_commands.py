"""The provider commands read a secret without showing it, and they report faults by name."""

from collections.abc import Iterator
from typing import Any

import flask
import pytest
from click.testing import Result

from comments import errors
from comments.accounts.oidc import providers
from comments.domain.moderation import roles
from comments.events import audit_log
from comments.store import connection, reads
from comments.store.models import account_rows
from tests.support.people import provider_login
from tests.support.people.account_holders import SECRET, here
from tests.support.people.provider_login import CLIENT, CLIENT_SECRET, Impostor

pytestmark = [pytest.mark.usefixtures("site"), pytest.mark.settings(provider_login.SETTINGS)]


@pytest.fixture
def provider(open_store: connection.Store) -> Iterator[Impostor]:
    with provider_login.impostor(open_store) as found:
        yield found


@pytest.fixture
def run(app: flask.Flask) -> Any:
    runner = app.test_cli_runner()

    def ran(*arguments: str, typed: str = "") -> Result:
        return runner.invoke(args=("provider", *arguments), input=typed)

    return ran


@pytest.fixture
def add(run: Any, provider: Impostor) -> Any:
    def added(*more: str, name: str = "acme", issuer: str = "", secret: str = CLIENT_SECRET) -> Any:
        given = ("add", name, "--issuer", issuer or provider.issuer, "--client", CLIENT, *more)
        return run(*given, typed=f"{secret}\n")

    return added


def test_a_provider_is_added_offered_listed_withdrawn_and_removed(
    run: Any, add: Any, provider: Impostor, open_store: connection.Store
) -> None:
    added = add("--title", "Acme Inc.", "--site", "demo")
    assert added.exit_code == 0, added.output
    assert "acme is available to readers of demo." in added.output
    assert "http://localhost/sign-in/return" in added.output
    with open_store.context():
        (stored,) = providers.every()
        assert (stored.title, stored.issuer) == ("Acme Inc.", provider.issuer)
        assert providers.client_secret(stored, SECRET, now=here()) == CLIENT_SECRET
        row = reads.get(account_rows.providers_key())
        assert CLIENT_SECRET not in row.providers
    listed = run("list").output
    assert listed == f"acme\t{provider.issuer}\t{CLIENT}\treaders of demo\n"
    assert run("check", "acme").output == "acme answers.\n"
    both = run("offer", "acme", "--desk").output
    assert both == "acme is available to readers of demo, owners and moderators.\n"
    assert (
        run("withdraw", "acme", "--desk", "--site", "demo").output
        == "acme is available to nobody.\n"
    )
    assert run("remove", "acme").output == "Removed provider acme.\n"
    assert run("list").output == ""
    assert CLIENT_SECRET not in added.output + listed
    with open_store.context():
        log = audit_log.log(roles.SERVICE)
    assert {(entry.actor.id, entry.subject) for entry in log} == {("cli", "provider:acme")}
    assert [entry.after for entry in log] == ["", "nobody", "demo, staff", "demo", "nobody"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"name": "Acme"}, "name must be 1 to 31 characters"),
        ({"name": ""}, "name must be 1 to 31 characters"),
        ({"issuer": "accounts.example.com"}, "The issuer must be"),
        ({"issuer": "https://a.example?x=y"}, "The issuer must be"),
        ({"issuer": "https://a.example#x"}, "The issuer must be"),
        ({"issuer": "https://ann@a.example"}, "The issuer must be"),
        ({"issuer": f"https://{'a' * 200}.example"}, "The issuer must be"),
        ({"issuer": "http://a.example"}, "must start with https://"),
        ({"issuer": "https://127.0.0.1"}, "url does not contain a valid host name."),
        ({"secret": "é"}, "secret must have"),
        ({"secret": "a" * 501}, "secret must have"),
    ],
    ids=str,
)
def test_an_invalid_provider_is_refused_by_its_field(
    run: Any, add: Any, changed: dict[str, str], said: str
) -> None:
    refused = add(**changed)
    assert refused.exit_code == 1, refused.output
    assert said in refused.output
    assert run("list").output == ""


def test_a_provider_with_an_invalid_document_is_not_added(
    run: Any, add: Any, provider: Impostor
) -> None:
    for document in ({"issuer": "https://elsewhere.example"}, {"jwks_uri": None}):
        provider.document = document
        assert add().exit_code == 1
    provider.document = {}
    assert add("--site", "nothing").exit_code == 1
    assert run("list").output == ""


def test_a_provider_is_added_once_and_their_number_is_limited(
    run: Any, add: Any, provider: Impostor, open_store: connection.Store
) -> None:
    assert add().exit_code == 0
    assert "The provider acme already exists." in add().output
    assert "already exists." in add(name="other").output
    with open_store.context():
        for number in range(providers.MOST - 1):
            issuer = f"https://p{number}.example"
            given = providers.Registration(f"p{number}", "P", issuer, CLIENT, CLIENT_SECRET)
            providers.add(providers.make(given, SECRET, now=here()))
        one_more = providers.Registration("more", "P", "https://more.example", CLIENT, "x")
        with pytest.raises(errors.Conflict, match="too-many-providers"):
            providers.add(providers.make(one_more, SECRET, now=here()))


@pytest.mark.parametrize("command", ["offer", "withdraw", "check", "remove"])
def test_an_unknown_provider_or_site_is_reported(run: Any, add: Any, command: str) -> None:
    refused = run(command, "nothing")
    assert refused.exit_code == 1
    assert "There is no sign-in provider" in refused.output
    add()
    assert run("offer", "acme", "--site", "nothing").exit_code == 1


@pytest.mark.settings
class TestWithoutAnAddressOfOurs:
    def test_no_provider_is_added(self, run: Any, add: Any) -> None:
        refused = add()
        assert refused.exit_code == 1
        assert "PUBLIC_URL" in refused.output
        assert run("list").output == ""
