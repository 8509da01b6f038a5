"""Proofs of work: ALTCHA challenges that a browser solves before a reader can post.

This module owns the content of a challenge, which is in the signed salt: the site, the purpose, the
number of attempts, and the times when the form was opened and when the challenge expires. The salt
also contains a keyed hash of the network to which the challenge is charged, and of each wider
network around it. Making a challenge stores nothing; `admission` uses `Proof.digest` to ensure that
each challenge is used for only one post.

    salt       {24 hex digits}?s={site}&n={network}[.{network}...]&t={opened}&w={tries}
               [&p={purpose}]&expires={seconds since 1970}&

A challenge without `p` is for a post. Browsers hash the salt with every attempt, so the salt is
short.

    challenge  SHA-256 of salt and number; `signature` is its HMAC with a key for this purpose only
    solution   base64 of {"algorithm", "challenge", "number", "salt", "signature"}

The library (https://altcha.org) implements version 1 of the ALTCHA protocol, which phones can solve
with nothing but a hash function. Importing the library takes 30 ms, so only the functions that make
or check a challenge import it.
"""

import base64
import binascii
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple
from urllib.parse import parse_qs

import msgspec

from comments import errors
from comments.domain import decoders
from comments.domain.crypto import keyed_hashes, secret_rotation

TERM = timedelta(hours=1)
POST = "post"
_LONGEST = 2_000  # In characters; a real solution has about 500.
_ALGORITHM: Literal["SHA-256"] = "SHA-256"


class Challenge(msgspec.Struct, frozen=True):
    """A challenge for a browser: find the `number`, at most `maxnumber`, that gives `challenge`.

    A comment that is sent within the first `wait` seconds is refused. `turnstile` is the site's
    Turnstile key if the browser must also send a Turnstile token, otherwise "".
    """

    algorithm: str
    challenge: str
    maxnumber: int
    salt: str
    signature: str
    wait: int
    turnstile: str = ""


class _Solution(msgspec.Struct, frozen=True):
    """A browser's solution. Other ALTCHA widgets also send the time taken."""

    algorithm: Literal["SHA-256"]
    challenge: str
    number: int
    salt: str
    signature: str


class Proof(NamedTuple):
    """A solved challenge. `tries` is the maximum number of attempts that the challenge required.

    `secret` is the secret that signed the challenge, so ids that are derived from this secret do
    not change after a rotation.
    """

    site: str
    network: str
    opened: datetime
    expires: datetime
    digest: bytes
    around: tuple[str, ...] = ()
    purpose: str = POST
    tries: int = 0
    secret: str = ""


def make(  # noqa: PLR0913 - the content of a challenge
    site: str,
    network: str,
    *,
    tries: int,
    wait: int,
    secret: str,
    now: datetime,
    purpose: str = POST,
    around: Sequence[str] = (),
) -> Challenge:
    """Make a challenge that requires at most `tries` attempts; 0 requires no search.

    `network` and `around` are keyed hashes of networks. The hashes contain no ".".
    """
    from altcha import v1  # noqa: PLC0415 - see above

    parameters = {
        "s": site,
        "n": ".".join((network, *around)),
        "t": str(int(now.timestamp())),
        "w": str(tries),
    }
    if purpose != POST:
        parameters["p"] = purpose
    made = v1.create_challenge(
        v1.ChallengeOptions(
            algorithm=_ALGORITHM,
            max_number=tries,
            number=None if tries else 0,
            hmac_key=_key(secret),
            expires=now + TERM,
            params=parameters,
        )
    )
    return Challenge(_ALGORITHM, made.challenge, tries, made.salt, made.signature, wait)


def network(answer: bytes, *, secret: str) -> str:
    """Return the keyed hash of the network to which a challenge, given as JSON, is charged.

    Raises:
        errors.Forbidden: the challenge was not signed with the service's secret.
    """
    try:
        made = decoders.json(Challenge).decode(answer)
    except msgspec.MsgspecError as error:
        raise errors.Forbidden("proof-invalid") from error
    for key in secret_rotation.accepted_secrets(secret):
        signature = hmac.new(_key(key).encode(), made.challenge.encode(), "sha256").hexdigest()
        if hmac.compare_digest(signature, made.signature):
            return parse_qs(made.salt.partition("?")[2])["n"][0].partition(".")[0]
    raise errors.Forbidden("proof-invalid")


def check(solution: str, *, secret: str) -> Proof:
    """Check a solution.

    The caller must check the proof's site and time, and whether the proof has been used before.

    Raises:
        errors.Forbidden: the solution does not solve a challenge of this service.
    """
    from altcha import v1  # noqa: PLC0415 - see above

    problem = errors.Forbidden("proof-invalid")
    if len(solution) > _LONGEST:
        raise problem
    try:
        sent = decoders.json(_Solution).decode(base64.b64decode(solution, validate=True))
    except (binascii.Error, msgspec.MsgspecError, ValueError) as error:
        raise problem from error
    payload = v1.Payload(sent.algorithm, sent.challenge, sent.number, sent.salt, sent.signature)
    for key in secret_rotation.accepted_secrets(secret):
        is_right, _ = v1.verify_solution(payload, _key(key), check_expires=False)
        if is_right:
            return _decode(sent, key)
    raise problem


def _decode(sent: _Solution, secret: str) -> Proof:
    """Decode the salt, which is trustworthy because its signature is valid."""
    parameters = parse_qs(sent.salt.partition("?")[2])
    opened, expires = (
        datetime.fromtimestamp(int(parameters[name][0]), UTC) for name in ("t", "expires")
    )
    network, *around = parameters["n"][0].split(".")
    return Proof(
        parameters["s"][0],
        network,
        opened,
        expires,
        bytes.fromhex(sent.challenge)[:8],
        tuple(around),
        parameters.get("p", [POST])[0],
        int(parameters["w"][0]),
        secret,
    )


def _key(secret: str) -> str:
    return keyed_hashes.keyed_digest(secret, "proof of work").hex()
