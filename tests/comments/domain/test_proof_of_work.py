"""The service accepts only challenges that it signed, each for its own purpose."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from altcha import v1

from comments import errors
from comments.domain.crypto import proof_of_work
from tests.support.people import proof_solver

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = "a secret of the tests"


def made(secret: str = SECRET, tries: int = 50) -> dict[str, Any]:
    challenge = proof_of_work.make("demo", "net", tries=tries, wait=3, secret=secret, now=NOW)
    return dict(msgspec.to_builtins(challenge))


def assert_refused(solution: str) -> None:
    with pytest.raises(errors.Forbidden) as caught:
        proof_of_work.check(solution, secret=SECRET)
    assert caught.value.code == "proof-invalid"


def test_a_solved_challenge_contains_its_purpose() -> None:
    proof = proof_of_work.check(proof_solver.solved(made()), secret=SECRET)
    assert proof[:4] == ("demo", "net", NOW, NOW + proof_of_work.TERM)
    assert len(proof.digest) == 8
    assert proof.digest != proof_of_work.check(proof_solver.solved(made()), secret=SECRET).digest


def test_the_librarys_solver_solves_it_and_its_payload_is_accepted() -> None:
    given = made()
    challenge = v1.Challenge(
        given["algorithm"],
        given["challenge"],
        given["maxnumber"],
        given["salt"],
        given["signature"],
    )
    solution = v1.solve_challenge(
        given["challenge"], given["salt"], given["algorithm"], given["maxnumber"], 0
    )
    assert solution is not None
    payload = v1.Payload(
        challenge.algorithm, challenge.challenge, solution.number, challenge.salt,
        challenge.signature,
    )  # fmt: skip
    assert proof_of_work.check(payload.to_base64(), secret=SECRET).site == "demo"


def test_a_challenge_contains_its_purpose_work_and_surrounding_networks() -> None:
    made = proof_of_work.make(
        "demo", "net", around=("wide", "wider"), purpose="vote", tries=20, wait=0, secret=SECRET,
        now=NOW,
    )  # fmt: skip
    proof = proof_of_work.check(proof_solver.solved(msgspec.to_builtins(made)), secret=SECRET)
    assert (proof.network, proof.around) == ("net", ("wide", "wider"))
    assert (proof.purpose, proof.tries) == ("vote", 20)


def test_no_two_challenges_are_the_same() -> None:
    assert len({made()["challenge"] for _ in range(20)}) == 20


@pytest.mark.parametrize(
    "changed",
    [
        {"number": 51},
        {"number": 1.5},
        {"number": "1"},
        {"number": True},
        {"algorithm": "SHA-1"},
        {"algorithm": "none"},
        {"challenge": "0" * 64},
        {"signature": ""},
        {"signature": "é"},
        {"salt": ""},
    ],
)
def test_a_changed_solution_is_refused(changed: dict[str, object]) -> None:
    assert_refused(proof_solver.solved(made(), **changed))


@pytest.mark.parametrize(
    ("old", "new"),
    [("s=demo", "s=other"), ("n=net", "n=ten"), ("expires=", "expires=9"), ("t=1", "t=0")],
)
def test_the_content_of_a_challenge_cannot_be_changed(old: str, new: str) -> None:
    given = made()
    assert old in given["salt"]
    assert_refused(proof_solver.solved(given, salt=given["salt"].replace(old, new)))


def test_digits_of_the_number_cannot_move_into_the_salt() -> None:
    given = made(tries=50_000)
    solution = json.loads(base64.b64decode(proof_solver.solved(given)))
    first, rest = divmod(solution["number"], 10)
    assert_refused(
        proof_solver.encoded({**solution, "salt": f"{given['salt']}{first}", "number": rest})
    )


def test_a_challenge_of_another_secret_or_purpose_is_refused() -> None:
    assert_refused(proof_solver.solved(made("another secret of the tests")))
    forged = v1.create_challenge(
        v1.ChallengeOptions(hmac_key=SECRET, max_number=9, params={"s": "demo"})
    )
    assert_refused(proof_solver.solved(vars(forged)))


@pytest.mark.parametrize(
    "solution", ["", "x", "====", "bnVsbA==", "W10=", "e30=", "\ud800", "é", "A" * 3_000, "/w=="]
)
def test_a_malformed_solution_is_refused(solution: str) -> None:
    assert_refused(solution)


def test_a_challenge_without_work_has_number_zero() -> None:
    given = made(tries=0)
    assert given["maxnumber"] == 0
    assert proof_of_work.check(proof_solver.solved(given), secret=SECRET).opened == NOW
    assert given["wait"] == 3
    assert timedelta(hours=1) == proof_of_work.TERM
