"""Define the proofs of work that the API requires: purposes, difficulty and verification.

Owns the purposes, and the amount of work that each purpose requires. A post requires the work that
the site's limits set. A vote or a report requires this work divided by `LIGHTER`. Only callers
without a token need a proof for a vote or a report, because a token shows that its holder has
already done the work for a post or a first vote.

How often a proof can be used:

- For a post: once; `admission` records the use.
- For a vote or a report: any number of times. The proof identifies one person (`person`). Sending
  it again therefore has no further effect, and its use need not be stored. The proof is not bound
  to the sender's network, because phones change networks. Limits per network apply to the network
  that sends the proof.
- For a sign-in mail: once; `email_login` records the use.

While too many sign-in mails are requested (`login_mail_rush`), each mail requires `HARDER` times
the work of a post, because unwanted mails harm the owners of the addresses, not the site.

A site that requires no proof of work for posts (`PROOF_OF_WORK` or the site's own limit is 0)
requires no proof for votes and reports either.
"""

import enum
from datetime import datetime

from comments import errors
from comments.domain.crypto import client_networks, keyed_hashes, proof_of_work
from comments.domain.ids import author_ids
from comments.limits import budgets, demand, post_limits
from comments.limits.site_request import SiteRequest

LIGHTER = 5
HARDER = 4
LEAST = 50_000  # The work for a sign-in mail is based on at least this number of attempts.
_SHORT = 13  # Number of characters in a wider network's digest: 65 bits, which are quick to hash.


class ChallengePurpose(enum.StrEnum):
    """The purpose of a challenge. Renaming a purpose invalidates its recent challenges."""

    POST = proof_of_work.POST
    VOTE = "vote"
    REPORT = "report"
    SIGN_IN = "sign-in"


def work(request: SiteRequest, purpose: ChallengePurpose) -> int:
    """Return the maximum number of attempts for a proof, or 0 if the site requires no proof."""
    limits = post_limits.of(request.site, request.settings)
    tries = budgets.tighten(request.site, limits, now=request.now).proof_of_work
    if purpose is ChallengePurpose.POST:
        return tries
    if purpose is ChallengePurpose.SIGN_IN:
        return min(post_limits.HARDEST, HARDER * max(tries, LEAST))
    return -(-tries // LIGHTER)


def account(site: str, network: str, secret: str) -> str:
    """Return the keyed hash of a network, under which its challenges and posts are counted."""
    return client_networks.digest(secret, f"posts/{site}", network)


def accounts_around(site: str, network: str, secret: str) -> tuple[str, ...]:
    """Return the keyed hashes of the wider networks, in the order of `client_networks.WIDER`."""
    wider = client_networks.around(network)
    return tuple(account(site, name, secret)[:_SHORT] for name, _ in wider)


def challenge(request: SiteRequest, purpose: ChallengePurpose) -> proof_of_work.Challenge:
    """Make a challenge for a browser. Challenges are harder while many are requested."""
    site, secret, network = request.site, request.settings.secret, request.sender.network
    seen = demand.DEMAND.get()
    # Votes must not make posting harder, and posts must not make voting harder.
    factor = seen.factor(site.id if purpose is ChallengePurpose.POST else f"{site.id} {purpose}")
    is_post = purpose is ChallengePurpose.POST
    return proof_of_work.make(
        site.id,
        account(site.id, network, secret),
        around=accounts_around(site.id, network, secret),
        purpose=purpose,
        tries=min(post_limits.HARDEST, work(request, purpose) * factor),
        wait=post_limits.of(site, request.settings).form_seconds if is_post else 0,
        secret=secret,
        now=request.now,
    )


def check(
    solution: str, site: str, purpose: ChallengePurpose, *, secret: str, now: datetime
) -> proof_of_work.Proof:
    """Check a solution and return the proof. The caller checks whether the proof was used before.

    Raises:
        errors.Forbidden: the solution is missing, wrong, too old, or for a different site or
        purpose.
    """
    where = f"/api/v1/sites/{site}/challenge"
    where += "" if purpose is ChallengePurpose.POST else f"?purpose={purpose}"
    if not solution:
        raise errors.Forbidden("proof-required", challenge=where)
    proof = proof_of_work.check(solution, secret=secret)
    if proof.site != site:
        raise errors.Forbidden("proof-invalid")
    if proof.purpose != purpose:
        raise errors.Forbidden("proof-invalid")
    if now >= proof.expires:
        raise errors.Forbidden("proof-expired")
    return proof


def person(solution: str, request: SiteRequest, purpose: ChallengePurpose) -> str | None:
    """Return the author id of a caller without a token, or None if no proof is required.

    The same proof always leads to the same id. Until the proof expires, anyone who presents it is
    treated as that person, as if they presented a token. A proof contains 96 random bits from the
    server, so it cannot be guessed.

    Raises:
        errors.Forbidden: see `check`.
    """
    if not work(request, purpose):
        return None
    site, secret = request.site.id, request.settings.secret
    proof = check(solution, site, purpose, secret=secret, now=request.now)
    made = keyed_hashes.keyed_digest(proof.secret, "proved", site, purpose, proof.digest.hex())
    return f"{author_ids.GUEST}{keyed_hashes.text(made)}"
