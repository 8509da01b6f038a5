"""Each invitation and password reset works once, and only for the person who received it."""

import threading
from datetime import timedelta

import pytest
from google.api_core import exceptions as api

from comments import errors
from comments.accounts import accounts, sessions
from comments.accounts.links import invitations, one_time_links
from comments.accounts.passwords import credentials, password_login, totp
from comments.domain.moderation import roles
from comments.store import connection, reads, transactions
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET, moderator
from tests.support.prepared_stores import NOW

MAIL = "ann@example.org"


def test_an_invitation_creates_a_signed_in_account_with_its_roles(store: connection.Store) -> None:
    session = account_holders.accept(account_holders.invite(moderator("blog"), moderator("shop")))
    assert session.account.grants == (moderator("blog"), moderator("shop"))
    assert sessions.find(session.token, SECRET, now=NOW) == session
    assert account_holders.sign_in("ann").account == session.account
    assert accounts.staff() == [session.account]


def test_one_of_twenty_concurrent_acceptances_of_an_invitation_succeeds(
    open_store: connection.Store,
) -> None:
    with open_store.context():
        token = account_holders.invite(OWNER)
    start, got, refused = threading.Barrier(20), [], []

    def accept(number: int) -> None:
        with open_store.context():
            start.wait()
            try:
                got.append(account_holders.accept(token, f"ann{number}"))
            except errors.BadLink as error:
                refused.append(error)

    threads = [threading.Thread(target=accept, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 19)
    with open_store.context():
        assert accounts.staff() == [got[0].account]


def test_a_refused_form_does_not_use_up_the_invitation(store: connection.Store) -> None:
    account_holders.account("bob")
    token = account_holders.invite(OWNER)
    for login, password in (("bob", PASSWORD), ("", PASSWORD), ("a b", PASSWORD), ("ann", "short")):
        with pytest.raises((errors.BadInput, errors.Conflict)):
            account_holders.accept(token, login, password)
    assert account_holders.accept(token, "ann").account.grants == (OWNER,)


@pytest.mark.parametrize("token", ["", "x" * 43, "a.b", "\ud800" * 43, "x" * 10_000])
def test_an_invalid_token_is_refused(store: connection.Store, token: str) -> None:
    with pytest.raises(errors.BadLink):
        account_holders.accept(token)
    with pytest.raises(errors.BadLink):
        invitations.reset_password(
            token, invitations.PasswordReset(PASSWORD), account_holders.cause()
        )


def test_a_link_is_valid_for_its_purpose_and_term(store: connection.Store) -> None:
    ann = account_holders.account("ann", OWNER)
    invitation, reset = (
        account_holders.invite(OWNER),
        invitations.issue_reset(ann, account_holders.cause()),
    )
    with pytest.raises(errors.BadLink):
        account_holders.accept(reset, "bob")
    with pytest.raises(errors.BadLink):
        invitations.reset_password(
            invitation, invitations.PasswordReset(PASSWORD), account_holders.cause()
        )
    with pytest.raises(errors.BadLink) as late:
        account_holders.accept(invitation, "bob", now=NOW + invitations.TERM)
    assert late.value.code == "link-expired"
    over = NOW + invitations.RESET_TERM
    with pytest.raises(errors.BadLink):
        invitations.reset_password(
            reset, invitations.PasswordReset(PASSWORD), account_holders.cause(over)
        )
    assert account_holders.accept(
        invitation, "bob", now=NOW + invitations.TERM - timedelta(seconds=1)
    )


def test_unused_links_are_deleted_after_their_term(store: connection.Store) -> None:
    for day in range(30):
        account_holders.invite(OWNER, now=NOW + timedelta(days=day))
    kept = list(reads.fetch(reads.Query("Ticket")))
    assert len(kept) <= invitations.TERM.days + 1


@pytest.mark.usefixtures("store")
class TestBoundToAnAddress:
    def test_a_new_account_gets_the_invited_address(self) -> None:
        made = account_holders.accept(account_holders.invite(moderator(), address=MAIL), "").account
        assert accounts.by_text(MAIL, SECRET) == made
        assert accounts.address_of(made, SECRET, now=NOW) == MAIL
        assert account_holders.sign_in(MAIL).account == made

    def test_only_an_account_with_the_invited_address_may_accept(self) -> None:
        bob = account_holders.account("bob", mail="bob@example.org")
        ann = account_holders.account("ann", mail=MAIL.upper())
        token = account_holders.invite(moderator(), address=MAIL)
        with pytest.raises(errors.Forbidden, match="wrong-invitation"):
            invitations.accept_as(bob.id, token, account_holders.cause())
        assert accounts.by_text("bob", SECRET) == bob
        with pytest.raises(errors.Conflict, match="address-taken"):
            account_holders.accept(token, "eve")
        given = invitations.accept_as(ann.id, token, account_holders.cause())
        assert given.grants == (moderator(),)
        with pytest.raises(errors.BadLink):
            invitations.accept_as(ann.id, token, account_holders.cause())


def test_an_existing_account_accepts_and_gets_a_new_session(store: connection.Store) -> None:
    ann = account_holders.account("ann", moderator("blog"))
    session = account_holders.sign_in("ann")
    for invited, held in (
        (moderator("shop"), [moderator("blog"), moderator("shop")]),
        (roles.Grant(roles.Role.OWNER, "blog"), [moderator("blog"), moderator("shop"),
                                                 roles.Grant(roles.Role.OWNER, "blog")]),
    ):  # fmt: skip
        given = invitations.accept_as(
            ann.id, account_holders.invite(invited), account_holders.cause()
        )
        assert list(given.grants) == held
    assert sessions.find(session.token, SECRET, now=NOW) is None


def test_the_first_owner_may_have_had_an_account(store: connection.Store) -> None:
    ann, bob = account_holders.account("ann"), account_holders.account("bob")
    tokens = [account_holders.invite(OWNER, first=True) for _ in range(3)]
    invitations.accept_as(ann.id, tokens[0], account_holders.cause())
    assert accounts.is_owned()
    with pytest.raises(errors.Conflict):
        invitations.accept_as(bob.id, tokens[1], account_holders.cause())
    with pytest.raises(errors.Conflict):
        account_holders.accept(tokens[2], "eve")
    assert accounts.staff() == [accounts.by_text("ann", SECRET)]


RENEWED = "another password"


def _renew(token: str, password: str = RENEWED, code: str = "") -> sessions.Session:
    choice = invitations.PasswordReset(password, code)
    return invitations.reset_password(token, choice, account_holders.cause())


def _code(key: str) -> str:
    return totp.code(key, int(NOW.timestamp()) // totp.STEP)


def test_a_reset_sets_a_password_and_ends_sessions(store: connection.Store) -> None:
    ann = account_holders.account("ann", OWNER)
    session = account_holders.sign_in("ann")
    token = invitations.issue_reset(ann, account_holders.cause())
    with pytest.raises(errors.BadInput):
        _renew(token, "short")
    choice = invitations.PasswordReset(RENEWED, browser=session.token)
    renewed = invitations.reset_password(token, choice, account_holders.cause())
    assert sessions.find(session.token, SECRET, now=NOW) is None
    assert sessions.find(renewed.token, SECRET, now=NOW) == renewed
    assert account_holders.sign_in("ann", RENEWED)
    with pytest.raises(errors.BadLink):
        _renew(token, PASSWORD)


def test_a_used_or_superseded_reset_link_is_invalid(store: connection.Store) -> None:
    ann = account_holders.account("ann", OWNER)
    first, second = (invitations.issue_reset(ann, account_holders.cause()) for _ in range(2))
    with pytest.raises(errors.BadLink):
        _renew(first)
    assert _renew(second)
    for token in (first, second):
        with pytest.raises(errors.BadLink):
            _renew(token, "a third password")
    assert account_holders.sign_in("ann", RENEWED)


@pytest.mark.parametrize("meanwhile", ["password", "signed out"])
def test_a_reset_link_becomes_invalid_once_its_owner_changes_password_or_signs_out(
    store: connection.Store, meanwhile: str
) -> None:
    ann = account_holders.account("ann", OWNER)
    token = invitations.issue_reset(ann, account_holders.cause())
    if meanwhile == "password":
        credentials.set_password(
            ann.id, credentials.check_and_hash("a third password"), account_holders.cause()
        )
    else:
        accounts.end_sessions(ann.id, account_holders.cause())
    with pytest.raises(errors.BadLink):
        _renew(token)


def test_a_reset_keeps_and_requires_the_second_factor(store: connection.Store) -> None:
    ann, key = account_holders.account("ann", OWNER), totp.secret()
    credentials.set_totp(ann.id, key, 0, account_holders.cause())
    session = sessions.begin(ann.id, SECRET, now=NOW)
    token = invitations.issue_reset(ann, account_holders.cause())
    for wrong in ("", "000000"):
        with pytest.raises(errors.BadInput, match="wrong-totp-code") as refused:
            _renew(token, code=wrong)
        assert refused.value.field == "code"
    assert sessions.find(session.token, SECRET, now=NOW), "nothing must have changed yet"
    renewed = _renew(token, code=_code(key))
    assert renewed.account.has_totp
    with pytest.raises(password_login.Wrong):
        account_holders.sign_in("ann", RENEWED)
    with pytest.raises(password_login.Wrong):
        account_holders.sign_in("ann", RENEWED, _code(key))  # Refused: the reset used up the code


def test_guesses_of_the_code_for_a_reset_are_limited(store: connection.Store) -> None:
    ann, key = account_holders.account("ann", OWNER), totp.secret()
    credentials.set_totp(ann.id, key, 0, account_holders.cause())
    token = invitations.issue_reset(ann, account_holders.cause())
    for _ in range(password_login.PER_NAME.most):
        with pytest.raises(errors.BadInput):
            _renew(token, code="000000")
    with pytest.raises(errors.TooMany):
        _renew(token, code=_code(key))


def test_a_reset_link_may_remove_the_second_factor_too(store: connection.Store) -> None:
    ann = account_holders.account("ann", OWNER)
    credentials.set_totp(ann.id, totp.secret(), 0, account_holders.cause())
    token = invitations.issue_reset(ann, account_holders.cause(), removes_second_factor=True)
    assert accounts.by_text("ann", SECRET).has_totp, "the link was not used yet"
    assert not _renew(token).account.has_totp
    assert account_holders.sign_in("ann", RENEWED)


def test_a_reset_link_of_an_older_release_is_refused(store: connection.Store) -> None:
    ann = account_holders.account("ann", OWNER)
    token = one_time_links.issue(
        one_time_links.LinkPurpose.RESET, ann.id, SECRET, now=NOW, term=invitations.RESET_TERM
    )
    with pytest.raises(errors.BadLink):
        _renew(token)


@pytest.mark.parametrize("lost", ["accept", "accept_as", "renew", "sign_in"])
def test_a_commit_whose_answer_is_lost_is_applied_once(
    store: connection.Store, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    ann = account_holders.account("ann", OWNER)
    invitation, reset = (
        account_holders.invite(OWNER),
        invitations.issue_reset(ann, account_holders.cause()),
    )
    commit, losses = transactions.commit, []

    def losing(opened: connection.Transaction) -> None:
        commit(opened)
        if len(losses) < 6 and opened.mutations:
            losses.append(opened)
            if len(losses) % 2:
                raise api.ServiceUnavailable("the answer was lost")

    monkeypatch.setattr(transactions, "commit", losing)
    done = {
        "accept": lambda: account_holders.accept(invitation, "bob"),
        "accept_as": lambda: invitations.accept_as(ann.id, invitation, account_holders.cause()),
        "renew": lambda: invitations.reset_password(
            reset, invitations.PasswordReset(PASSWORD), account_holders.cause()
        ),
        "sign_in": lambda: account_holders.sign_in("ann"),
    }[lost]()
    assert losses
    if isinstance(done, sessions.Session):
        assert sessions.find(done.token, SECRET, now=NOW) == done
    used = [row for row in reads.fetch(reads.Query("Ticket"))
            if row.properties["used"].string_value]  # fmt: skip
    assert len(used) == (lost != "sign_in")
    assert one_time_links.LinkPurpose.RESET in str(used) or lost != "renew"
