"""A guest's API token identifies its holder on one site, for a limited time."""

import base64
import hashlib
from datetime import UTC, datetime

import itsdangerous
import pytest

from comments.web.api.callers import api_tokens
from comments.web.http import problems

SECRET = "a secret of the tests"
GUEST = api_tokens.Guest("demo", "g:ann")
TERM = 3600


def read(token: str, term: int = TERM) -> api_tokens.Guest:
    return api_tokens.read(f"Bearer {token}", secret=SECRET, term=term)  # type: ignore[return-value]


def test_a_token_names_its_guest() -> None:
    assert read(api_tokens.sign(GUEST, secret=SECRET)) == GUEST


# A change to this format would sign out every guest.
def test_tokens_are_signed_with_sha_256() -> None:
    token = "eyJzIjoiZGVtbyIsImciOiJnOmFubiJ9.ZZN8BQ.t30vRxYThyyIHteq1Lql0dO7IlT3Nuy-cZdXMJyZ8kU"
    assert read(token, term=100 * 365 * 24 * 3600) == GUEST
    signature = api_tokens.sign(GUEST, secret=SECRET).rpartition(".")[2]
    assert len(base64.urlsafe_b64decode(f"{signature}=")) == hashlib.sha256().digest_size


def test_claims_are_signed_as_by_the_library() -> None:
    library = itsdangerous.URLSafeTimedSerializer(
        SECRET, salt="flatthread guest 1", signer_kwargs={"digest_method": hashlib.sha256}
    )
    mine = api_tokens.sign(GUEST, secret=SECRET)
    assert library.loads(mine) == {"s": "demo", "g": "g:ann"}
    assert mine.partition(".")[0] == library.dumps({"s": "demo", "g": "g:ann"}).partition(".")[0]


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    token = api_tokens.sign(GUEST, secret=SECRET)
    assert api_tokens.read(f"{scheme} {token}", secret=SECRET, term=TERM) == GUEST


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer a b", "Bearer ä", "Bearer " + "a" * 2_000],
)
def test_another_header_is_not_a_token(header: str) -> None:
    with pytest.raises(problems.Unauthenticated):
        api_tokens.read(header, secret=SECRET, term=TERM)


def test_every_damaged_token_is_refused() -> None:
    token = api_tokens.sign(GUEST, secret=SECRET)
    for place in range(len(token) - 1):  # The last character has unused bits
        swapped = "A" if token[place] != "A" else "B"
        with pytest.raises(problems.Unauthenticated):
            read(token[:place] + swapped + token[place + 1 :])


def test_a_token_of_another_secret_is_refused() -> None:
    with pytest.raises(problems.Unauthenticated):
        read(api_tokens.sign(GUEST, secret="another secret"))


def test_an_expired_token_is_reported_as_expired() -> None:
    with pytest.raises(problems.Unauthenticated) as refusal:
        read(api_tokens.sign(GUEST, secret=SECRET), term=-1)
    assert refusal.value.code == "token-expired"


@pytest.mark.parametrize("salt", ["cursor\0demo", "unsubscribe", "itsdangerous"])
def test_a_token_for_another_purpose_is_refused(salt: str) -> None:
    signer = itsdangerous.URLSafeTimedSerializer(SECRET, salt=salt)
    with pytest.raises(problems.Unauthenticated):
        read(str(signer.dumps({"s": "demo", "g": "g:ann"})))


@pytest.mark.parametrize(
    "claims", [{}, {"s": "demo"}, {"s": "demo", "g": 1}, [], {"s": "demo", "g": ""}]
)
def test_a_token_without_a_guest_is_refused(claims: object) -> None:
    signer = itsdangerous.URLSafeTimedSerializer(SECRET, salt="flatthread guest 1")
    with pytest.raises(problems.Unauthenticated):
        read(str(signer.dumps(claims)))


def test_an_expiry_is_in_whole_seconds() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    issued = api_tokens.issue(api_tokens.Guest("demo", "g:a"), secret="s" * 20, term=60, now=now)
    assert issued.expires == datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC)
