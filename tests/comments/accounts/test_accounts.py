"""Each identity belongs to one account, and the store contains no readable secret."""

import concurrent.futures
import threading
from datetime import timedelta

import argon2
import pytest

from comments import errors
from comments.accounts import accounts, identities, sessions
from comments.accounts.passwords import credentials, hashing
from comments.domain import records
from comments.domain.moderation import roles
from comments.store import connection, reads
from datastore_emulator import inprocess
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET, moderator
from tests.support.prepared_stores import NOW

MAIL = "ann@example.org"


def _rows(*kinds: str) -> str:
    """Return all stored rows of the given kinds as text."""
    return "".join(str(row) for kind in kinds for row in reads.fetch(reads.Query(kind)))


def test_an_account_is_found_by_login_and_address(store: connection.Store) -> None:
    ann = account_holders.account("ann", moderator(), mail=MAIL)
    assert accounts.by_text("ANN ", SECRET) == accounts.by_text("Ann@Example.org", SECRET) == ann
    assert accounts.by_text(ann.id, SECRET) == accounts.by_text(ann.author, SECRET) == ann
    assert ann.actor == records.Actor(f"a:{ann.id}", "Ann")
    assert accounts.address_of(ann, SECRET, now=NOW) == MAIL
    with pytest.raises(errors.NotFound):
        accounts.by_text("nobody", SECRET)


@pytest.mark.parametrize("taken", [{"login": "ann"}, {"login": "bob", "mail": MAIL.upper()}])
def test_a_login_and_an_address_belong_to_one_account(store: connection.Store, taken: dict) -> None:
    account_holders.account("ann", mail=MAIL)
    with pytest.raises(errors.Conflict, match=r"login-taken|address-taken"):
        account_holders.account(**taken)
    assert accounts.by_identity(identities.of_login("bob"), SECRET) is None


def test_one_of_many_concurrent_requests_for_a_login_gets_it(open_store: connection.Store) -> None:
    start, got, refused = threading.Barrier(8), [], []

    def ask() -> None:
        with open_store.context():
            start.wait()
            try:
                got.append(account_holders.account("ann", OWNER, password=""))
            except errors.Conflict as error:
                refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 7)
    with open_store.context():
        assert accounts.staff() == [accounts.by_text("ann", SECRET)] == got


@pytest.mark.parametrize(
    "login", ["", " ", ".ann", "an n", "ann/bob", "ännchen", "a" * 64, "an\nn", "ann:x", "ann\0"]
)
def test_an_invalid_sign_in_name_is_refused(login: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        identities.of_login(login)
    assert refused.value.field == "login"


@pytest.mark.parametrize("subject", ["", " ", "\ud800", "x" * 1_001])
def test_a_provider_without_a_subject_is_refused(subject: str) -> None:
    with pytest.raises(errors.BadInput):
        identities.of_provider("oidc/somebody", subject)


def test_identities_of_different_subjects_and_providers_are_distinct() -> None:
    subjects = ["1", "2", "1 ", "site/a", "a"]
    providers = ["oidc/a", "oidc/b", "site/a", identities.MAIL]
    names = {
        identities.of_provider(provider, subject).name(SECRET)
        for provider in providers
        for subject in subjects
    }
    assert len(names) == len(subjects) * len(providers)


def test_the_keys_of_identities_are_stable() -> None:
    """A change to these golden values would lock all users out of their accounts."""
    assert identities.of_login("Ann").name(SECRET) == "login:ann"
    assert identities.FIRST_OWNER.name(SECRET) == "first:owner"
    assert identities.of_address(MAIL).name(SECRET) == "mail:ev4fuytywv5s5itjnsburefrgy"
    assert (
        identities.of_provider("site/demo", "7").name(SECRET)
        == "site/demo:dx2ijye4y5xjqz664ppmcwxdsu"
    )


def test_the_store_contains_no_password_token_or_address(store: connection.Store) -> None:
    account_holders.account("ann", OWNER, mail=MAIL)
    session = account_holders.sign_in("ann")
    token = account_holders.invite(moderator(), address="bob@example.org")
    held = _rows("Account", "Identity", "Session", "Ticket")
    assert "owner *" in held
    for secret in (PASSWORD, MAIL, "example.org", session.token.partition(".")[2], token):
        assert secret not in held


def test_a_role_is_held_until_it_is_revoked_and_a_change_ends_sessions(
    store: connection.Store,
) -> None:
    ann = account_holders.account("ann", moderator("demo"), moderator("blog"))
    for change in (
        lambda: accounts.grant(ann.id, roles.Role.OWNER, "demo", account_holders.cause()),
        lambda: accounts.grant(ann.id, None, "demo", account_holders.cause()),
        lambda: credentials.set_password(
            ann.id, credentials.check_and_hash(PASSWORD), account_holders.cause()
        ),
        lambda: accounts.end_sessions(ann.id, account_holders.cause()),
    ):
        session = account_holders.sign_in("ann")
        assert sessions.find(session.token, SECRET, now=NOW)
        change()
        assert sessions.find(session.token, SECRET, now=NOW) is None
    held = accounts.by_text("ann", SECRET)
    assert held.grants == (moderator("blog"),)
    assert not held.may(roles.Right.MODERATE, "demo")
    assert accounts.staff() == [held]
    accounts.grant(ann.id, None, "blog", account_holders.cause())
    assert accounts.staff() == []


def test_a_removed_account_leaves_nothing_behind(store: connection.Store) -> None:
    ann = account_holders.account("ann", OWNER, mail=MAIL)
    session = account_holders.sign_in("ann")
    assert accounts.remove(ann.id)
    assert not accounts.remove(ann.id)
    assert sessions.find(session.token, SECRET, now=NOW) is None
    assert _rows("Account", "Identity", "Session") == ""
    account_holders.account("ann", mail=MAIL)


def test_a_service_that_had_an_owner_never_gets_a_first_owner_again(
    store: connection.Store,
) -> None:
    assert not accounts.is_owned()
    one, two = (account_holders.invite(OWNER, first=True) for _ in range(2))
    first = account_holders.accept(one, "ann").account
    assert accounts.is_owned()
    with pytest.raises(errors.Conflict, match="owner-exists"):
        account_holders.accept(two, "bob")
    accounts.remove(first.id)
    assert accounts.is_owned()
    with pytest.raises(errors.Conflict, match="owner-exists"):
        account_holders.accept(two, "bob")


def test_of_two_owners_who_remove_each_other_one_stays(store: connection.Store) -> None:
    owners = [account_holders.account(login, OWNER) for login in ("ann", "bob")]
    start = threading.Barrier(2)

    def dismiss(account: str) -> bool:
        start.wait()
        try:
            with store.context():
                accounts.dismiss(account)
        except errors.Conflict:
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(dismiss, [owner.id for owner in owners]))
    assert sorted(outcomes) == [False, True]
    (left,) = accounts.staff()
    with pytest.raises(errors.Conflict, match="last-owner"):
        accounts.grant(left.id, None, roles.SERVICE, account_holders.cause())
    accounts.grant(left.id, roles.Role.MODERATOR, "demo", account_holders.cause())
    account_holders.account("cat", OWNER)
    accounts.grant(left.id, None, roles.SERVICE, account_holders.cause())


def test_a_failing_store_never_reports_that_there_is_no_owner(
    short_deadline: connection.Store, engine: inprocess.Engine
) -> None:
    engine.close()
    with short_deadline.context(), pytest.raises(errors.Overloaded):
        accounts.is_owned()
    with short_deadline.context(), pytest.raises(errors.Overloaded):
        sessions.find(sessions.new_token("a" * 26), SECRET, now=NOW)


class TestPasswords:
    @pytest.mark.parametrize("password", ["", "short one", "x" * 201])
    def test_a_password_that_is_too_short_or_too_long_is_refused(self, password: str) -> None:
        with pytest.raises(errors.BadInput):
            hashing.check(password)

    def test_a_password_matches_its_own_hash_only(self) -> None:
        made = hashing.hash_password("pässword of ten")
        assert made.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
        assert hashing.hash_password("pässword of ten") != made
        assert hashing.matches(made, "pa\u0308ssword of ten")
        assert not hashing.matches(made, "password of ten")
        assert not hashing.matches(made, "")
        assert not hashing.matches("", "nobody has this password")
        assert not hashing.matches("damaged", PASSWORD)

    @pytest.mark.usefixtures("store")
    def test_a_weaker_hash_is_replaced_at_the_next_sign_in(self) -> None:
        ann = account_holders.account("ann", OWNER)
        weak = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
        credentials.set_password(ann.id, weak, account_holders.cause())
        assert hashing.is_outdated(weak)
        account_holders.sign_in("ann")
        stored = _rows("Account")
        assert weak not in stored
        assert "m=19456" in stored
        account_holders.sign_in("ann", now=NOW + timedelta(hours=1))
