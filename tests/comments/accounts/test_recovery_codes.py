"""Each recovery code replaces one code of a lost authenticator."""

import concurrent.futures
import threading

import pytest

from comments import errors
from comments.accounts import accounts, sessions
from comments.accounts.links import invitations
from comments.accounts.passwords import credentials, password_login, recovery_codes, totp
from comments.store import connection, reads
from comments.store.models import account_rows
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET
from tests.support.prepared_stores import NOW

pytestmark = pytest.mark.usefixtures("quick_passwords")


def _codes(login: str = "ann") -> list[str]:
    """Create an account with an authenticator, and return its recovery codes."""
    made, codes = account_holders.account(login, OWNER), recovery_codes.make()
    hashes = recovery_codes.hash_all(codes)
    credentials.set_totp(made.id, totp.secret(), 0, account_holders.cause(), recovery=hashes)
    return codes


def _left() -> int:
    return accounts.by_text("ann", SECRET).recovery_codes


def test_ten_different_codes_are_made() -> None:
    codes = recovery_codes.make()
    assert [code[0] for code in codes] == list("0123456789")
    assert len({code[1:] for code in codes}) == 10
    assert recovery_codes.in_groups("0123456789012") == "0 1234 5678 9012"


def test_a_code_signs_in_once(store: connection.Store) -> None:
    codes = _codes()
    assert _left() == 10
    assert account_holders.sign_in("ann", code=recovery_codes.in_groups(codes[3]))
    assert _left() == 9
    with pytest.raises(password_login.Wrong):
        account_holders.sign_in("ann", code=codes[3])
    assert account_holders.sign_in("ann", code=codes[9])
    assert _left() == 8


@pytest.mark.parametrize("change", ["", "1", "12", " ", "x", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_a_malformed_code_is_wrong(store: connection.Store, change: str) -> None:
    codes = _codes()
    with pytest.raises(password_login.Wrong):
        account_holders.sign_in("ann", code=codes[0][:-1] + change)
    with pytest.raises(password_login.Wrong):
        account_holders.sign_in("ann", code=f"1{codes[0][1:]}")
    with pytest.raises(password_login.Wrong):
        account_holders.sign_in("ann", "not the password", codes[0])
    assert _left() == 10


def test_a_code_belongs_to_one_account(store: connection.Store) -> None:
    codes = _codes()
    _codes("bob")
    with pytest.raises(password_login.Wrong):
        account_holders.sign_in("bob", code=codes[0])


def test_one_of_many_concurrent_uses_of_a_code_succeeds(store: connection.Store) -> None:
    codes, start = _codes(), threading.Barrier(5)

    def use(_: int) -> bool:
        start.wait()
        try:
            with store.context():
                account_holders.sign_in("ann", code=codes[0])
        except password_login.Wrong:
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        assert sum(pool.map(use, range(5))) == 1
    assert _left() == 9


def test_guesses_are_limited_together_with_passwords(store: connection.Store) -> None:
    codes = _codes()
    for _ in range(password_login.PER_NAME.most):
        with pytest.raises(password_login.Wrong):
            account_holders.sign_in("ann", code="0" * 13)
    with pytest.raises(errors.TooMany):
        account_holders.sign_in("ann", code=codes[0])


def test_the_store_contains_only_hashes(store: connection.Store) -> None:
    codes = _codes()
    held = str(reads.get(account_rows.account_key(accounts.by_text("ann", SECRET).id)).recovery)
    assert held.count("$argon2id$") == 10
    assert not any(code in held or code[1:] in held for code in codes)


def test_a_code_resets_a_password_in_place_of_the_authenticators(store: connection.Store) -> None:
    codes = _codes()
    token = invitations.issue_reset(accounts.by_text("ann", SECRET), account_holders.cause())
    choice = invitations.PasswordReset("another one", codes[5])
    assert invitations.reset_password(token, choice, account_holders.cause()).account.has_totp
    assert _left() == 9


def test_codes_work_after_the_secret_was_lost(store: connection.Store) -> None:
    codes = _codes()
    attempt = password_login.LoginAttempt("ann", PASSWORD, codes[0])
    assert password_login.sign_in(attempt, account_holders.cause(secret="a new secret"))


def test_codes_end_with_the_authenticator(store: connection.Store) -> None:
    _codes()
    ann = accounts.by_text("ann", SECRET)
    token = invitations.issue_reset(ann, account_holders.cause(), removes_second_factor=True)
    invitations.reset_password(
        token, invitations.PasswordReset("another one"), account_holders.cause()
    )
    assert _left() == 0
    with pytest.raises(errors.Conflict, match="no-authenticator"):
        credentials.set_recovery_codes(
            ann.id, recovery_codes.hash_all(recovery_codes.make()), account_holders.cause()
        )
    credentials.set_totp(ann.id, totp.secret(), 0, account_holders.cause(), recovery=["x"])
    credentials.set_totp(ann.id, "", 0, account_holders.cause())
    assert _left() == 0


def test_new_codes_replace_the_old_ones_and_end_sessions(store: connection.Store) -> None:
    codes = _codes()
    session = account_holders.sign_in("ann", code=codes[0])
    fresh = recovery_codes.make()
    credentials.set_recovery_codes(
        session.account.id, recovery_codes.hash_all(fresh), account_holders.cause()
    )
    assert sessions.find(session.token, SECRET, now=NOW) is None
    with pytest.raises(password_login.Wrong):
        account_holders.sign_in("ann", code=codes[1])
    assert account_holders.sign_in("ann", code=fresh[1])
