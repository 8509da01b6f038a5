"""Test what the command `notification` prints, does and refuses."""

from collections.abc import Callable

import click.testing
import pytest

from comments import app as apps
from comments.accounts import accounts
from comments.domain import records
from comments.store import connection
from tests.support.outside.mail_server import Box
from tests.support.people import account_holders
from tests.support.people.account_holders import SECRET

Run = Callable[..., click.testing.Result]


@pytest.fixture
def run(open_store: connection.Store, site: records.Site, box: Box) -> Run:
    """Return a function that runs `flatthread notification ...`."""
    runner = apps.create_app(box.settings(secret=SECRET), open_store).test_cli_runner()
    return lambda *arguments: runner.invoke(args=["notification", *arguments])


@pytest.fixture
def mod(open_store: connection.Store, site: records.Site) -> accounts.Account:
    with open_store.context():
        account_holders.account("ann", account_holders.moderator())
        return account_holders.account("mod", account_holders.moderator(), mail="mod@example.org")


def test_the_commands_set_and_list_who_gets_what(run: Run, mod: accounts.Account) -> None:
    assert run("set", "demo", "mod", "daily", "--hour", "21", "--zone", "Asia/Tokyo").exit_code == 0
    assert run("set", "demo", "old@example.org", "held").exit_code == 0
    listed = "held\t-\told@example.org\ndaily\t21:00 Asia/Tokyo\tmod\n"
    assert run("list", "demo").output == listed
    # The address of an account stands for the account.
    assert run("set", "demo", "mod@example.org", "none").exit_code == 0
    assert run("list", "demo").output == "held\t-\told@example.org\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("set", "demo", "nobody", "each"), "nobody"),
        (("set", "demo", "ann", "each"), "ann has no address."),
        (("set", "demo", "mod", "daily", "--hour", "24"), "between 0 and 23"),
        (("set", "demo", "mod", "daily", "--zone", "Mars/Base"), "zone must be one of"),
        (("set", "demo", "a b@x", "each"), "address"),
        (("set", "none", "mod", "each"), "none"),
        (("test", "demo", "a b@x"), "address"),
    ],
)
def test_wrong_arguments_are_refused(
    run: Run, mod: accounts.Account, arguments: tuple[str, ...], said: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert said in result.output
    assert run("list", "demo").output == ""


def test_a_test_mail_prints_what_the_server_answered(run: Run, box: Box) -> None:
    result = run("test", "demo", "ann@example.org")
    assert (result.exit_code, result.output) == (0, "sent\n")
    assert box.recipients == ["ann@example.org"]
    box.refuse = lambda _: "550 unknown"
    result = run("test", "demo", "ann@example.org")
    assert (result.exit_code, result.output) == (1, "refused: 550\n")
