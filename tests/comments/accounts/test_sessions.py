"""Password sign-ins start sessions that expire, and password guesses are limited."""

import base64
import threading
from datetime import datetime, timedelta

import pytest

from comments import errors
from comments.accounts import session_rows, sessions
from comments.accounts.passwords import credentials, hashing, password_login, totp
from comments.store import connection, reads
from datastore_emulator import inprocess, testing
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET
from tests.support.prepared_stores import NOW

MINUTE = timedelta(minutes=1)


def _find(token: str, now: datetime = NOW) -> sessions.Session | None:
    return sessions.find(token, SECRET, now=now)


def test_a_session_is_found_only_by_its_token(store: connection.Store) -> None:
    account_holders.account("ann", OWNER)
    bob = account_holders.account("bob")
    session = account_holders.sign_in("ann")
    assert _find(session.token) == session
    account, _, random = session.token.partition(".")
    for token in (
        "",
        random,
        f"{account}.",
        f"{bob.id}.{random}",
        f"{account}.{random[:-1]}A" if not random.endswith("A") else f"{account}.{random[:-1]}B",
        f"{session.token}x",
        f"{session.token}\n",
        f"{'z' * 26}.{random}",
    ):
        assert _find(token) is None
    assert sessions.find(session.token, "another secret", now=NOW) is None


def test_a_session_ends_by_disuse_by_age_and_by_signing_out(store: connection.Store) -> None:
    account_holders.account("ann", OWNER)
    token = account_holders.sign_in("ann").token
    assert _find(token, NOW + sessions.IDLE - MINUTE)
    # Using the session one minute before it expired extended it.
    assert _find(token, NOW + sessions.IDLE + MINUTE)
    assert _find(token, NOW + 2 * sessions.IDLE + MINUTE) is None

    token, now = account_holders.sign_in("ann").token, NOW
    while now + sessions.IDLE / 2 < NOW + sessions.LONGEST:
        now += sessions.IDLE / 2
        assert _find(token, now)
    assert _find(token, NOW + sessions.LONGEST) is None

    token = account_holders.sign_in("ann").token
    sessions.end(token, SECRET)
    sessions.end(token, SECRET)
    assert _find(token) is None


def test_a_sessions_use_is_stored_every_few_minutes_only(
    store: connection.Store, engine: inprocess.Engine
) -> None:
    account_holders.account("ann", OWNER)
    token = account_holders.sign_in("ann").token
    with testing.meter(engine) as cost:
        for second in range(0, 500, 50):
            _find(token, NOW + timedelta(seconds=second))
    assert (cost.reads, cost.writes) == (20, 0)
    with testing.meter(engine) as cost:
        _find(token, NOW + 11 * MINUTE)
        _find(token, NOW + 12 * MINUTE)
    assert cost.writes == 1


def test_signing_in_ends_the_browsers_earlier_session(store: connection.Store) -> None:
    account_holders.account("ann", OWNER)
    account_holders.account("eve", OWNER)
    planted, other = account_holders.sign_in("eve").token, account_holders.sign_in("ann").token
    token = account_holders.sign_in("ann", token=planted).token
    assert token not in {planted, other}
    assert _find(planted) is None
    assert _find(other)
    assert _find(token)


@pytest.mark.slow
def test_the_number_of_sessions_of_an_account_is_limited(store: connection.Store) -> None:
    account_holders.account("ann", OWNER)
    tokens = [
        account_holders.sign_in("ann", now=NOW + number * 20 * MINUTE).token
        for number in range(session_rows.MOST + 3)
    ]
    now = NOW + len(tokens) * 20 * MINUTE
    assert [_find(token, now) is not None for token in tokens] == [False] * 3 + [
        True
    ] * session_rows.MOST
    late = now + sessions.LONGEST
    account_holders.sign_in("ann", now=late)
    assert len(list(reads.fetch(reads.Query("Session")))) == 1


@pytest.mark.parametrize(
    ("login", "password"),
    [("ann", "another password"), ("nobody", PASSWORD), ("a b", PASSWORD), ("x@y", PASSWORD),
     ("", ""), ("guest", ""), ("ann", "\ud800" * 12), ("ann", "x" * 10_000)],
)  # fmt: skip
def test_a_wrong_name_and_a_wrong_password_are_indistinguishable(
    store: connection.Store, engine: inprocess.Engine, login: str, password: str
) -> None:
    account_holders.account("ann", OWNER)
    account_holders.account("guest", password="")
    hashes = []
    with testing.meter(engine) as cost, pytest.MonkeyPatch.context() as patch:
        verify = type(hashing.hasher()).verify
        patch.setattr(
            type(hashing.hasher()),
            "verify",
            lambda self, stored, given: hashes.append(stored) or verify(self, stored, given),
        )
        with pytest.raises(password_login.Wrong) as wrong:
            account_holders.sign_in(login, password)
    assert wrong.value.code == "wrong-credentials"
    # Sign-in reads and writes two rate limits, reads an identity and an account, and computes one
    # hash.
    assert (cost.reads + cost.small, cost.writes) == (4, 2)
    assert [each.split("$")[3] for each in hashes] == ["m=19456,t=2,p=1"]


@pytest.mark.slow
def test_attempts_are_limited_per_name_and_per_network(store: connection.Store) -> None:
    account_holders.account("ann", OWNER)
    for login in ("ann", "nobody"):
        for _ in range(password_login.PER_NAME.most):
            with pytest.raises(password_login.Wrong):
                account_holders.sign_in(login, "another password")
        with pytest.raises(errors.TooMany) as refused:
            account_holders.sign_in(login, PASSWORD)
        assert 0 < refused.value.retry_after <= password_login.PER_NAME.window.total_seconds()
    for number in range(password_login.PER_NETWORK.most - 2 * password_login.PER_NAME.most):
        with pytest.raises(password_login.Wrong):
            account_holders.sign_in(f"somebody{number}")
    with pytest.raises(errors.TooMany):
        account_holders.sign_in("somebody-else")
    assert account_holders.sign_in("ann", now=NOW + password_login.PER_NAME.window)


def test_only_wrong_passwords_count_against_a_confirmation(store: connection.Store) -> None:
    ann, cause = account_holders.account("ann", OWNER).id, account_holders.cause()
    for _ in range(password_login.PER_NAME.most):
        password_login.confirm(ann, PASSWORD, cause)
        with pytest.raises(password_login.Wrong):
            password_login.confirm(ann, "another password", cause)
    with pytest.raises(errors.TooMany):
        password_login.confirm(ann, PASSWORD, cause)
    later = account_holders.cause(NOW + password_login.PER_NAME.window)
    for _ in range(password_login.PER_NETWORK.most + 1):
        password_login.confirm(ann, PASSWORD, later)


def test_a_confirmation_takes_nothing_back_from_a_later_window(
    store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, matches = account_holders.account("ann", OWNER).id, hashing.matches
    later = account_holders.cause(NOW + password_login.PER_NAME.window)

    def overtaken(stored: str, password: str) -> bool:
        monkeypatch.setattr(hashing, "matches", matches)
        for _ in range(password_login.PER_NAME.most):
            with pytest.raises(password_login.Wrong):
                password_login.confirm(ann, "another password", later)
        return matches(stored, password)

    monkeypatch.setattr(hashing, "matches", overtaken)
    password_login.confirm(ann, PASSWORD, account_holders.cause())
    with pytest.raises(errors.TooMany):
        password_login.confirm(ann, PASSWORD, later)


@pytest.mark.parametrize("is_signed_in", [False, True])
def test_concurrent_guesses_are_counted_one_by_one(
    open_store: connection.Store, monkeypatch: pytest.MonkeyPatch, *, is_signed_in: bool
) -> None:
    monkeypatch.setattr(hashing, "matches", lambda *_: False)
    with open_store.context():
        ann = account_holders.account("ann", OWNER).id
    start, wrong, refused = threading.Barrier(20), [], []

    def guess() -> None:
        with open_store.context():
            start.wait()
            try:
                if is_signed_in:
                    password_login.confirm(ann, "another password", account_holders.cause())
                else:
                    account_holders.sign_in("ann", "another password")
            except password_login.Wrong as error:
                wrong.append(error)
            except errors.TooMany as error:
                refused.append(error)

    threads = [threading.Thread(target=guess) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(wrong), len(refused)) == (
        password_login.PER_NAME.most,
        20 - password_login.PER_NAME.most,
    )


def test_a_password_changed_during_its_check_lets_nobody_in(
    store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = account_holders.account("ann", OWNER)
    matches = hashing.matches

    def overtaken(stored: str, password: str) -> bool:
        is_right = matches(stored, password)
        credentials.set_password(
            ann.id, credentials.check_and_hash("another password"), account_holders.cause()
        )
        return is_right

    monkeypatch.setattr(hashing, "matches", overtaken)
    with pytest.raises(password_login.Wrong):
        account_holders.sign_in("ann")


class TestAuthenticators:
    @pytest.mark.parametrize(
        ("moment", "code"),
        [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ],
    )
    def test_codes_are_those_of_the_standard(self, moment: int, code: str) -> None:
        """The expected codes are the last six of the eight digits in RFC 6238, appendix B."""
        key = base64.b32encode(b"12345678901234567890").decode()
        assert totp.code(key, moment // totp.STEP) == code

    def test_a_code_is_valid_once_within_its_half_minute_and_the_adjacent_ones(self) -> None:
        key, step = totp.secret(), int(NOW.timestamp()) // totp.STEP
        near = {each: totp.code(key, step + each) for each in range(-3, 4)}
        for each, code in near.items():
            expected = step + each if abs(each) <= 1 else None
            assert totp.step_of(key, code, now=NOW, after=0) == expected
        assert totp.step_of(key, f"{near[0][:3]} {near[0][3:]}", now=NOW, after=step - 1) == step
        assert totp.step_of(key, near[0], now=NOW, after=step) is None
        assert totp.step_of(key, near[-1], now=NOW, after=step) is None
        for wrong in ("", "000", "1234567", "abcdef", "١٢٣٤٥٦"):
            assert totp.step_of(key, wrong, now=NOW, after=0) is None

    def test_a_code_is_required_and_accepted_once(self, open_store: connection.Store) -> None:
        key, step = totp.secret(), int(NOW.timestamp()) // totp.STEP
        with open_store.context():
            ann = account_holders.account("ann", OWNER)
            credentials.set_totp(ann.id, key, step - 2, account_holders.cause())
            for code in ("", "000000", totp.code(key, step - 5)):
                with pytest.raises(password_login.Wrong):
                    account_holders.sign_in("ann", code=code)
        start, got = threading.Barrier(5), []

        def replay() -> None:
            with open_store.context():
                start.wait()
                try:
                    got.append(account_holders.sign_in("ann", code=totp.code(key, step)))
                except password_login.Wrong:
                    got.append(None)  # type: ignore[arg-type]

        threads = [threading.Thread(target=replay) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 5
        assert len([each for each in got if each]) == 1

    @pytest.mark.usefixtures("store")
    def test_an_unreadable_second_factor_lets_nobody_in(self) -> None:
        ann = account_holders.account("ann", OWNER)
        credentials.set_totp(
            ann.id, totp.secret(), 0, account_holders.cause(secret="a secret that was changed")
        )
        with pytest.raises(password_login.Wrong):
            account_holders.sign_in("ann")
        credentials.set_totp(ann.id, "", 0, account_holders.cause())
        assert account_holders.sign_in("ann")
