"""Login flows: what somebody set out for when he was sent to a provider, until he is back.

Owns what the ticket of a journey holds, sealed: where it goes, whose browser it is, and what the
provider's answer is checked with. Its token is the `state` of the request. A browser is known by a
random value in a cookie of its own (`provider_redirects`), so an answer counts in the browser that
set out: nobody can be signed in as somebody else by a link, and nobody's answer is worth anything
elsewhere.

What must stay true:

- A journey ends once, within `TERM`, in its own browser. Another browser cannot even use it up.
- One network sets out `PER_NETWORK` times: each time is a row and a request to the provider.
- Where people come back to is made of `PUBLIC_URL`, never of a request.
"""

import enum
import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from comments import config, errors
from comments.accounts import one_time_links
from comments.accounts.oidc import oidc_client, providers
from comments.domain.crypto import encryption, keyed_hashes
from comments.events import safe_http
from comments.sites import rate_limits
from comments.store import transactions

TERM = timedelta(minutes=10)
PER_NETWORK = rate_limits.Limit("journeys to providers", 30, timedelta(minutes=15))
RETURN = "sign-in/return"
_PURPOSE = "journey"
_BROWSER = re.compile(r"[A-Za-z0-9_-]{43}")


class Purpose(enum.StrEnum):
    """What somebody wants at the end. Stored as text."""

    DESK = "desk"  # be signed in as an owner or a moderator
    LINK = "link"  # have the account he is signed in to led to by who he is there
    INVITATION = "invitation"  # accept one
    READER = "reader"  # be known where he reads


class Goal(msgspec.Struct, frozen=True):
    """What a journey is for. Which fields count goes by `aim`.

    `account` and `epoch` are those of whoever links; `invitation` is a token, `name` what a
    newcomer is to be called; `session` is the token that the browser had, which it does not send
    with a link from elsewhere; `site`, `origin` and `challenge` are of the page a reader is on.
    """

    aim: Purpose
    provider: str
    account: str = ""
    epoch: str = ""
    invitation: str = ""
    name: str = ""
    session: str = ""
    site: str = ""
    origin: str = ""
    challenge: str = ""


class LoginFlow(msgspec.Struct, frozen=True):
    """A journey as stored. `browser` is a digest."""

    goal: Goal
    browser: str
    nonce: str
    verifier: str


class Redirect(NamedTuple):
    """Where the browser goes, and what it is to be known by when it comes back."""

    address: str
    browser: str


class Browser(NamedTuple):
    """Who sets out or comes back: the network, and what the browser is known by, if by anything."""

    network: str
    browser: str


class UnexpectedAnswer(errors.Forbidden):
    """An answer of a provider that nobody here waits for, or not in this browser, or not again."""

    code = "bad-state"


def client(
    provider: providers.Provider, settings: config.Settings, out: safe_http.Client
) -> oidc_client.OidcClient:
    """A provider, as it is spoken to by this service.

    Raises:
        errors.Conflict: nobody said where people come back to.
    """
    if not settings.public_url:
        raise errors.Conflict("no-public-url")
    return oidc_client.OidcClient(provider, f"{settings.public_url}/{RETURN}", out)


def begin(
    goal: Goal, who: Browser, peer: oidc_client.OidcClient, *, secret: str, now: datetime
) -> Redirect:
    """Set out.

    Raises:
        errors.TooMany: the network set out too often.
        errors.Unreachable, openid.NotBelieved: the provider is not there.
    """
    browser = who.browser if _BROWSER.fullmatch(who.browser) else secrets.token_urlsafe(32)
    asked = oidc_client.Secrets(
        one_time_links.new_token(), one_time_links.new_token(), one_time_links.new_token()
    )
    journey = LoginFlow(goal, _digest(browser, secret), asked.nonce, asked.verifier)
    content = encryption.seal(msgspec.json.encode(journey).decode(), _PURPOSE, secret, now=now)
    ticket = one_time_links.Ticket(one_time_links.Purpose.JOURNEY, content)
    bucket = rate_limits.Network(PER_NETWORK, who.network, secret)
    one_time_links.sweep(now=now)

    def body() -> None:
        rate_limits.read(bucket, now=now)
        if bucket.is_empty:
            raise errors.TooMany(retry_after=bucket.wait(now))
        issued = one_time_links.issuing(asked.state, ticket, secret, now=now, term=TERM)
        transactions.apply(bucket.take(), issued)

    transactions.transaction(body)
    return Redirect(peer.way(asked), browser)


def end(
    state: str, browser: str, *, secret: str, now: datetime
) -> tuple[LoginFlow, oidc_client.Secrets]:
    """What somebody set out for who is back, once.

    Raises:
        Strayed: nobody set out so, or from another browser, or is back already, or too late.
    """
    attempt = one_time_links.new_token()

    def body() -> LoginFlow:
        content, used = one_time_links.using(
            state, one_time_links.Purpose.JOURNEY, attempt, secret, now=now
        )
        text = encryption.unseal(content, _PURPOSE, secret, now=now)
        journey = msgspec.json.decode(text, type=LoginFlow)
        if not browser or not keyed_hashes.is_one(journey.browser, secret, "browser", browser):
            raise UnexpectedAnswer
        transactions.apply(used)
        return journey

    try:
        journey = transactions.transaction(body)
    except errors.BadLink as error:
        raise UnexpectedAnswer from error
    return journey, oidc_client.Secrets(state, journey.nonce, journey.verifier)


def _digest(browser: str, secret: str) -> str:
    return keyed_hashes.text(keyed_hashes.keyed(secret, "browser", browser))
