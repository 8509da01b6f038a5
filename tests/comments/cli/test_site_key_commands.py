"""The site key commands show each secret once, and tokens signed with the secret are valid."""

import re
from pathlib import Path
from typing import Any

import flask
import pytest

from comments.accounts import reader_accounts, site_keys
from comments.store import connection
from tests.support.people import site_tokens
from tests.support.people.account_holders import SECRET, here

pytestmark = pytest.mark.usefixtures("site")


@pytest.fixture
def run(app: flask.Flask) -> Any:
    runner = app.test_cli_runner()
    return lambda *arguments: runner.invoke(args=("site-key", *map(str, arguments)))


def test_a_key_is_added_listed_and_removed(run: Any, open_store: connection.Store) -> None:
    added = run("add", "demo")
    found = re.fullmatch(
        r"Added key (\w{8}) to demo \(HS256\)\.\nSecret \(shown only once\): (\S{43})\n",
        added.output,
    )
    assert found
    with open_store.context():
        token = site_tokens.token(found[2])
        assert reader_accounts.of_site(token, "demo", secret=SECRET, now=here()).name == "Ann"
        assert found[2] not in str(site_keys.every("demo"))
    listed = run("list", "demo").output
    assert listed.startswith(f"{found[1]}\tHS256\t")
    assert found[2] not in listed
    assert run("remove", "demo", found[1]).output == f"Removed key {found[1]} of demo.\n"
    assert run("list", "demo").output == ""


def test_only_a_public_key_is_accepted(run: Any, tmp_path: Path) -> None:
    pem = tmp_path / "key.pem"
    pem.write_text(site_tokens.pem_of(site_tokens.Private.generate()))
    assert "(EdDSA)" in run("add", "demo", "--public", pem).output
    for text in ("", "no key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"):
        pem.write_text(text)
        refused = run("add", "demo", "--public", pem)
        assert refused.exit_code == 1
        assert "public must be a public Ed25519 key in PEM." in refused.output


def test_an_unknown_site_or_key_and_too_many_keys_are_refused(run: Any) -> None:
    for arguments in (("add", "nothing"), ("list", "nothing"), ("remove", "demo", "nothing")):
        refused = run(*arguments)
        assert refused.exit_code == 1
        assert "There is no site" in refused.output
    for _ in range(site_keys.MOST):
        assert run("add", "demo").exit_code == 0
    assert "A site can have at most" in run("add", "demo").output
