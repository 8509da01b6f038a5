"""Test what the account commands create, print and refuse."""

import re
from collections.abc import Callable
from datetime import timedelta

import click.testing
import flask
import pytest

from comments import errors
from comments.accounts import accounts, sessions
from comments.accounts.links import invitations
from comments.accounts.passwords import credentials, totp
from comments.store import connection
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET, moderator
from tests.support.prepared_stores import NOW

Run = Callable[..., click.testing.Result]

pytestmark = pytest.mark.usefixtures("site")


@pytest.fixture
def run(app: flask.Flask) -> Run:
    """Return a function that runs `flatthread account ...` with the input `typed`."""
    runner = app.test_cli_runner()
    return lambda *arguments, typed="": runner.invoke(args=("account", *arguments), input=typed)


def _token(run: Run, *arguments: str, page: str = "welcome") -> str:
    shown = run(*arguments)
    assert shown.exit_code == 0, shown.output
    found = re.fullmatch(rf"http://127\.0\.0\.1:8080/admin/{page}#([\w-]{{43}})\n", shown.stdout)
    assert found, shown.output
    return found[1]


def _typed(password: str = PASSWORD) -> str:
    return f"{password}\n{password}\n"


@pytest.mark.parametrize(
    ("arguments", "granted"),
    [
        (("--owner",), OWNER),
        (("--owner", "--service"), OWNER),
        (("--moderator", "--service"), moderator("*")),
        (("--moderator", "--site", "demo"), moderator("demo")),
    ],
)
def test_an_invitation_grants_the_role_it_names(
    run: Run, open_store: connection.Store, arguments: tuple[str, ...], granted: object
) -> None:
    token = _token(run, "invite", *arguments)
    with open_store.context():
        made = account_holders.accept(token, now=account_holders.here()).account
        assert made.grants == (granted,)
        # The first account with the owner role owns the service, regardless of the kind of
        # invitation.
        assert accounts.is_owned() == (granted == OWNER)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("invite",), "--owner or --moderator"),
        (("invite", "--moderator"), "either --site or --service"),
        (("invite", "--owner", "--site", "demo", "--service"), "either --site or --service"),
        (("invite", "--moderator", "--site", "nothing"), "There is no site nothing."),
        (("invite", "--owner", "--mail", "a,b@example.org"), "Enter an e-mail address"),
        (("add", "ann", "--role", "owner"), "either --site or --service"),
        (("role", "nobody", "owner", "--service"), "There is no account nobody."),
        (("address", "nobody", "a@example.org"), "There is no account nobody."),
        (("reset", "nobody"), "There is no account nobody."),
        (("remove", "nobody"), "There is no account nobody."),
        (("sign-out", "nobody"), "There is no account nobody."),
        (("withdraw", "nothing"), "not valid"),
    ],
)
def test_an_invalid_request_is_refused_in_one_line(
    run: Run, arguments: tuple[str, ...], problem: str
) -> None:
    refused = run(*arguments, typed=_typed())
    assert refused.exit_code == 1
    assert problem in refused.output
    assert "Traceback" not in refused.output


def test_a_link_has_the_services_public_url(run: Run) -> None:
    shown = run("invite", "--owner", "--url", "https://comments.example/under/")
    assert shown.output.startswith("https://comments.example/under/admin/welcome#")


def test_an_account_is_added_listed_changed_reset_and_removed(
    run: Run, open_store: connection.Store
) -> None:
    added = run("add", "ann", "--name", "Ann B", "--role", "owner", "--service", typed=_typed())
    assert added.exit_code == 0, added.output
    assert "Added ann, owner of the service." in added.output
    assert PASSWORD not in added.output
    with open_store.context():
        assert accounts.is_owned()
        made = account_holders.sign_in("ann").account
    taken = run("add", "Ann", "--role", "moderator", "--site", "demo", typed=_typed())
    assert "taken" in taken.output
    short = run("add", "bob", "--role", "moderator", "--site", "demo", typed=_typed("short"))
    assert "between 10 and 200 characters" in short.output
    assert run("list").output == f"{made.id}\tann\tAnn B\towner of the service\n"

    assert run("role", "ann", "moderator", "--site", "demo").output == (
        "Roles of ann: owner of the service, moderator of demo.\n"
    )
    with open_store.context():
        boss = account_holders.account("boss", OWNER)  # The service keeps an owner
    assert run("role", "ann", "none", "--service").output == "Roles of ann: moderator of demo.\n"
    token = _token(run, "reset", "ann", page="reset")
    with open_store.context():
        now = account_holders.here()
        invitations.reset_password(
            token, invitations.PasswordReset("another password"), account_holders.cause(now)
        )
        assert account_holders.sign_in("ann", "another password")
        credentials.set_totp(made.id, totp.secret(), 0, account_holders.cause(now))
    _reset_of_both(run, open_store)
    assert run("role", "ann", "none", "--site", "demo").output == "Roles of ann: none.\n"
    assert "has no role" in run("reset", "ann").output
    assert run("list").output == f"{boss.id}\tboss\tBoss\towner of the service\n"
    assert run("remove", made.id).output == f"Removed account {made.id}.\n"
    with open_store.context():
        assert accounts.get(made.id) is None


def test_the_security_log_is_shown(run: Run, open_store: connection.Store) -> None:
    with open_store.context():
        account_holders.account("ann", OWNER)
        account_holders.sign_in("ann", now=account_holders.here())
    run("sign-out", "ann")
    lines = [line.split("\t")[1:] for line in run("log", "ann").output.splitlines()]
    assert lines == [["sessions-ended", "operator", "-"], ["signed-in", "-", "A"]]


def test_a_pending_invitation_is_listed_and_withdrawn(
    run: Run, open_store: connection.Store
) -> None:
    token = _token(run, "invite", "--owner", "--mail", "ann@example.org")
    invitation, _, held, address = run("invitations").output.strip().split("\t")
    assert (held, address) == ("owner of the service", "a…@example.org")
    assert run("withdraw", invitation).exit_code == 0
    assert run("invitations").output == ""
    with open_store.context(), pytest.raises(errors.BadLink):
        account_holders.accept(token, now=account_holders.here())


def test_the_last_owner_keeps_the_account_and_the_role(
    run: Run, open_store: connection.Store
) -> None:
    run("add", "ann", "--role", "owner", "--service", typed=_typed())
    for arguments in (("remove", "ann"), ("role", "ann", "none", "--service")):
        refused = run(*arguments)
        assert refused.exit_code == 1
        assert "last owner" in refused.output
    with open_store.context():
        session = account_holders.sign_in("ann")
        assert run("sign-out", "ann").exit_code == 0
        assert sessions.find(session.token, SECRET, now=NOW) is None


def _reset_of_both(run: Run, open_store: connection.Store) -> None:
    """Reset an account after its owner lost both the password and the authenticator."""
    with open_store.context():
        now = account_holders.here()
        token = _token(run, "reset", "ann", page="reset")
        with pytest.raises(errors.BadInput, match="wrong-totp-code"):
            invitations.reset_password(
                token, invitations.PasswordReset(PASSWORD), account_holders.cause(now)
            )
        token = _token(run, "reset", "ann", "--remove-second-factor", page="reset")
        choice = invitations.PasswordReset(PASSWORD)
        assert not invitations.reset_password(
            token, choice, account_holders.cause(now)
        ).account.has_totp


@pytest.mark.parametrize("password", ["Password123", "QWERTYUIOP", "Ann.Example", "UNIVERSITY"])
def test_an_easily_guessed_password_is_refused(run: Run, password: str) -> None:
    arguments = ("add", "ann.example", "--role", "owner", "--service")
    refused = run(*arguments, typed=_typed(password))
    assert refused.exit_code == 1
    assert "Choose another one." in refused.output
    assert run("list").output == ""


def test_a_first_owners_link_can_be_made_until_there_is_an_owner(
    open_store: connection.Store,
) -> None:
    with open_store.context():
        links = [
            invitations.first_owner_link("http://here/", secret=SECRET, now=account_holders.here())
            for _ in range(2)
        ]
        tokens = [link.partition("http://here/admin/welcome#")[2] for link in links]
        assert len(set(tokens)) == 2
        with pytest.raises(errors.BadLink):
            account_holders.accept(
                tokens[0], now=account_holders.here() + timedelta(days=1, minutes=1)
            )
        assert account_holders.accept(tokens[1], now=account_holders.here()).account.grants == (
            OWNER,
        )
        with pytest.raises(errors.Conflict):
            account_holders.accept(tokens[0], "eve", now=account_holders.here())
        assert (
            invitations.first_owner_link("http://here/", secret=SECRET, now=account_holders.here())
            == ""
        )
