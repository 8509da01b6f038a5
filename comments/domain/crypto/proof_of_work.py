"""Proof of work: challenges that a browser solves before its reader may post, as ALTCHA has them.

Owns what a challenge says, in the salt that its signature covers: for which site and which
purpose it is, to which network it is charged (a keyed hash, and one for each wider network around
it), how many tries it takes, when the form was opened and until when it is good. Nothing is stored
when one is made; that each is good for one post is the admission's to see to (`admission`), by
`Proof.digest`.

    salt       {24 hex digits}?s={site}&n={network}[.{network}...]&t={opened}&w={tries}
               [&p={purpose}]&expires={seconds since 1970}&

Without `p` it is for a post. Browsers hash the salt with every try, so it is kept short.

    challenge  SHA-256 of salt and number, signature its HMAC under a key of this purpose alone
    solution   base64 of {"algorithm", "challenge", "number", "salt", "signature"}

The library (https://altcha.org, version 1 of its protocol, which telephones solve without more than
a hash) is imported where one is made or checked: it takes 30 ms.
"""

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple
from urllib.parse import parse_qs

import msgspec

from comments import errors
from comments.domain.crypto import keyed_hashes, secret_rotation

TERM = timedelta(hours=1)
POST = "post"
_LONGEST = 2_000  # characters; one of ours has about 500
_ALGORITHM: Literal["SHA-256"] = "SHA-256"


class Challenge(msgspec.Struct, frozen=True):
    """What a browser gets: to find the `number`, up to `maxnumber`, that gives `challenge`.

    A comment that is sent within `wait` seconds is refused. `turnstile` is the site's key there,
    where a token of it is to be sent too.
    """

    algorithm: str
    challenge: str
    maxnumber: int
    salt: str
    signature: str
    wait: int
    turnstile: str = ""


class _Solution(msgspec.Struct, frozen=True):
    """What it sends. Others' widgets add how long it took."""

    algorithm: Literal["SHA-256"]
    challenge: str
    number: int
    salt: str
    signature: str


class Proof(NamedTuple):
    """A challenge that was solved. `tries` is how many it took at most.

    `secret` is the one that it was signed with, by which ids that are made of it stay the same.
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


def make(  # noqa: PLR0913 - all that a challenge says
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
    """Make a challenge that takes so many tries at most; with 0 there is nothing to be found out.

    `network` and `around` name networks by keyed hashes, and hold no ".".
    """
    from altcha import v1  # noqa: PLC0415 - see above

    said = {
        "s": site,
        "n": ".".join((network, *around)),
        "t": str(int(now.timestamp())),
        "w": str(tries),
    }
    if purpose != POST:
        said["p"] = purpose
    made = v1.create_challenge(
        v1.ChallengeOptions(
            algorithm=_ALGORITHM,
            max_number=tries,
            number=None if tries else 0,
            hmac_key=_key(secret),
            expires=now + TERM,
            params=said,
        )
    )
    return Challenge(_ALGORITHM, made.challenge, tries, made.salt, made.signature, wait)


def check(solution: str, *, secret: str) -> Proof:
    """What was solved. Whether it is of this site, in time and not spent is for the caller.

    Raises:
        errors.Forbidden: it is no solution of a challenge of ours.
    """
    from altcha import v1  # noqa: PLC0415 - see above

    problem = errors.Forbidden("the proof of work is not right", code="proof-invalid")
    if len(solution) > _LONGEST:
        raise problem
    try:
        sent = msgspec.json.decode(base64.b64decode(solution, validate=True), type=_Solution)
    except (binascii.Error, msgspec.MsgspecError, ValueError) as error:
        raise problem from error
    payload = v1.Payload(sent.algorithm, sent.challenge, sent.number, sent.salt, sent.signature)
    for each in secret_rotation.accepted(secret):
        is_right, _ = v1.verify_solution(payload, _key(each), check_expires=False)
        if is_right:
            return _said(sent, each)
    raise problem


def _said(sent: _Solution, secret: str) -> Proof:
    """What the salt says. It is ours: the signature was right."""
    said = parse_qs(sent.salt.partition("?")[2])
    opened, expires = (datetime.fromtimestamp(int(said[name][0]), UTC) for name in ("t", "expires"))
    network, *around = said["n"][0].split(".")
    return Proof(
        said["s"][0],
        network,
        opened,
        expires,
        bytes.fromhex(sent.challenge)[:8],
        tuple(around),
        said.get("p", [POST])[0],
        # Those of an earlier release, which are good for an hour, do not say it.
        int(said.get("w", ["0"])[0]),
        secret,
    )


def _key(secret: str) -> str:
    return keyed_hashes.keyed(secret, "proof of work").hex()
