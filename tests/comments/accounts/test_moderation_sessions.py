"""Moderation sessions begin by a code, and end by age, revocation, or a change of the account."""

import concurrent.futures
from datetime import datetime, timedelta

import pytest

from comments.accounts import accounts, moderation_sessions, reader_accounts, session_rows
from comments.accounts.links import one_time_links, window_codes
from comments.domain.moderation import roles
from comments.store import connection, reads, transactions
from tests.support.people import account_holders, moderators
from tests.support.people.account_holders import SECRET, here, moderator

pytestmark = pytest.mark.usefixtures("store", "site", "quick_passwords")


def find(
    token: str, *, now: datetime | None = None
) -> moderation_sessions.ModerationSession | None:
    return moderation_sessions.find(token, SECRET, now=now or here())


def stored() -> int:
    return len(list(reads.fetch(reads.Query("ModerationSession"))))


def grant(account: accounts.Account, made: str, **more: str) -> str:
    site, origin = more.get("site", "demo"), more.get("origin", moderators.ORIGIN)
    challenge = moderators.challenge_of(made)
    return moderation_sessions.grant(account, site, origin, challenge, secret=SECRET, now=here())


def begin(
    made: str, code: str, site: str = "demo", origin: str | None = moderators.ORIGIN
) -> moderation_sessions.NewSession:
    shown = window_codes.PresentedCode(made, code)
    return moderation_sessions.begin(shown, site, origin, secret=SECRET, now=here())


def test_a_code_begins_one_session_for_the_site_and_origin_that_were_granted() -> None:
    ann, made = account_holders.account("ann", moderator()), moderators.verifier()
    code = grant(ann, made)
    begun = begin(made, code)
    found = find(begun.token)
    assert found is not None
    assert (found.account.id, found.site, found.origin) == (ann.id, "demo", moderators.ORIGIN)
    with pytest.raises(reader_accounts.Refused) as replayed:
        begin(made, code)
    assert replayed.value.code == "code-expired"
    assert stored() == 1


@pytest.mark.parametrize(
    ("site", "origin", "refused"),
    [
        ("blog", moderators.ORIGIN, "too-many-guesses"),
        ("demo", "https://www.demo.example", "code-expired"),
    ],
)
def test_a_code_is_refused_for_a_different_site_or_origin(
    site: str, origin: str, refused: str
) -> None:
    made = moderators.verifier()
    code = grant(account_holders.account("ann", moderator()), made)
    with pytest.raises(reader_accounts.Refused) as error:
        begin(made, code, site, origin)
    assert error.value.code == refused
    assert stored() == 0
    assert begin(made, code).session.site == "demo"


def test_a_code_is_refused_after_the_role_of_its_account_was_removed() -> None:
    ann, made = account_holders.account("ann", moderator()), moderators.verifier()
    code = grant(ann, made)
    accounts.grant(ann.id, None, "demo", account_holders.cause())
    with pytest.raises(reader_accounts.Refused):
        begin(made, code)
    assert stored() == 0


def test_a_readers_code_begins_no_session_and_the_reverse() -> None:
    ann, made = account_holders.account("ann", moderator()), moderators.verifier()
    code = grant(ann, made)
    purpose = one_time_links.LinkPurpose.WINDOW_CODE
    shown = window_codes.PresentedCode(made, code)
    with pytest.raises(reader_accounts.Refused):
        window_codes.redeem(purpose, "demo", shown, str, secret=SECRET, now=here())
    assert begin(made, code).session.account.id == ann.id


def test_one_of_many_concurrent_uses_of_a_code_begins_a_session(
    open_store: connection.Store,
) -> None:
    made = moderators.verifier()
    code = grant(account_holders.account("ann", moderator()), made)

    def use(_number: int) -> str:
        with open_store.context():
            try:
                return begin(made, code).token
            except reader_accounts.Refused:
                return ""

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        tokens = [token for token in pool.map(use, range(6)) if token]
    assert len(tokens) == stored() == 1
    assert find(tokens[0]) is not None


def test_a_session_ends_after_twelve_hours_however_much_it_is_used() -> None:
    began = here()
    token = moderators.token(account_holders.account("ann", moderator()), now=began)
    for hours in (3, 6, 9, 11.9):
        assert find(token, now=began + timedelta(hours=hours)) is not None
    assert find(token, now=began + moderation_sessions.TERM) is None


@pytest.mark.parametrize(
    "ending",
    [
        lambda ann, _: accounts.grant(ann.id, None, "demo", account_holders.cause()),
        lambda ann, _: accounts.grant(
            ann.id, roles.Role.MODERATOR, "blog", account_holders.cause()
        ),
        lambda ann, _: accounts.end_sessions(ann.id, account_holders.cause()),
        lambda ann, _: accounts.remove(ann.id),
        lambda ann, begun: moderation_sessions.revoke(ann.id, begun.session.id),
        lambda _, begun: moderation_sessions.end(begun.token, SECRET),
        lambda *_: moderation_sessions.end_all("demo"),
    ],
    ids=["role", "any role", "everywhere", "removed", "revoked", "ended", "off"],
)
def test_a_session_ends_with_the_trust_in_its_account(ending: object) -> None:
    ann = account_holders.account("ann", moderator())
    begun = moderators.begun(ann)
    assert find(begun.token) is not None
    ending(ann, begun)  # type: ignore[operator]
    assert find(begun.token) is None
    current = accounts.get(ann.id)
    assert current is None or moderation_sessions.of_account(current, now=here()) == []


def test_sessions_of_other_accounts_and_sites_are_not_ended() -> None:
    ann = account_holders.account("ann", moderator(), moderator("blog"))
    bob = account_holders.account("bob", moderator())
    on_demo, on_blog, of_bob = (
        moderators.begun(ann), moderators.begun(ann, "blog"), moderators.begun(bob),
    )  # fmt: skip
    moderation_sessions.revoke(bob.id, on_demo.session.id)
    assert find(on_demo.token) is not None
    moderation_sessions.end_all("demo")
    assert [find(each.token) is not None for each in (on_demo, on_blog, of_bob)] == [
        False, True, False,
    ]  # fmt: skip


def test_a_session_that_is_revoked_while_it_is_used_stays_revoked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The use was seen after the revocation, so recording it must not store the row again."""
    ann, began = account_holders.account("ann", moderator()), here()
    begun = moderators.begun(ann, now=began)
    whole = transactions.transaction

    def revoked_before(body: object, **more: object) -> object:
        monkeypatch.setattr(transactions, "transaction", whole)
        moderation_sessions.revoke(ann.id, begun.session.id)
        return whole(body, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(transactions, "transaction", revoked_before)
    assert find(begun.token, now=began + timedelta(hours=1)) is not None
    assert stored() == 0
    assert find(begun.token, now=began + timedelta(hours=1)) is None


def test_the_list_of_sessions_shows_the_last_use_and_no_token() -> None:
    ann, began = account_holders.account("ann", moderator()), here()
    begun = moderators.begun(ann, now=began)
    later = began + timedelta(hours=2)
    assert find(begun.token, now=later) is not None
    (listed,) = moderation_sessions.of_account(ann, now=later)
    assert (listed.created, listed.seen) == (began, later)
    assert listed.expires == began + moderation_sessions.TERM
    assert listed.id not in begun.token


def test_an_account_has_a_limited_number_of_sessions_and_the_newest_stay() -> None:
    ann, began = account_holders.account("ann", moderator()), here()
    tokens = [
        moderators.token(ann, now=began + timedelta(seconds=number))
        for number in range(session_rows.MOST + 1)
    ]
    now = began + timedelta(minutes=1)
    assert [find(token, now=now) is not None for token in tokens] == [
        False, *[True] * session_rows.MOST,
    ]  # fmt: skip


@pytest.mark.parametrize("token", ["", "m.", "m.a.b", f"m.{'a' * 26}.{'b' * 43}", "a" * 5000])
def test_an_invented_token_is_not_found(token: str) -> None:
    assert find(token) is None
    moderation_sessions.end(token, SECRET)
