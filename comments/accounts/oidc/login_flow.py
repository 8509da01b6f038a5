"""Track login flows, from the redirect to a provider to the browser's return.

Owns the encrypted content of a login flow's link: its goal, its browser, and the values for
checking the provider's answer. The ticket's token is the `state` parameter of the request. A random
value in a cookie identifies the browser (`provider_redirects`), so a provider's answer is valid
only in the browser that started the flow. A prepared link therefore cannot sign anyone in as
another person, and a stolen answer is useless in a different browser.

A flow is valid once, within `TERM`. The number of flows per network is limited to `PER_NETWORK`,
because each flow costs a row and a request to the provider. The return address is made from
`PUBLIC_URL`, never from a request.
"""

import enum
import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from comments import config, errors
from comments.accounts.links import one_time_links
from comments.accounts.oidc import oidc_client, providers
from comments.domain import decoders
from comments.domain.crypto import encryption, keyed_hashes
from comments.events import safe_http
from comments.limits import rate_limits
from comments.store import transactions

TERM = timedelta(minutes=10)
PER_NETWORK = rate_limits.Limit("journeys to providers", 30, timedelta(minutes=15))
RETURN = "sign-in/return"
_PURPOSE = "journey"
_BROWSER = re.compile(r"[A-Za-z0-9_-]{43}")


class LoginPurpose(enum.StrEnum):
    """The purpose of a login flow. The value is stored as text."""

    CONSOLE = "desk"  # Sign in as an owner or moderator.
    MODERATE = "moderate"  # Sign in to moderate, in the window that grants a moderation session.
    LINK = "link"  # Link the provider to the current account.
    INVITATION = "invitation"  # Accept an invitation.
    READER = "reader"  # Sign in as a reader.


class Goal(msgspec.Struct, frozen=True):
    """The goal of a login flow. `aim` determines which fields are used.

    - `account` and `epoch`: the account to link.
    - `invitation`: the invitation's token. `name`: the display name for a new account.
    - `session`: the token of the browser's session, which browsers do not send when they come back
      from another site.
    - `site`, `origin` and `challenge`: values of the page where the reader signs in, or where the
      moderator moderates.
    """

    aim: LoginPurpose
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
    """A stored login flow. `browser` is a digest."""

    goal: Goal
    browser: str
    nonce: str
    verifier: str


class Redirect(NamedTuple):
    """The address to redirect to, and the value of the cookie that identifies the browser."""

    address: str
    browser: str


class Browser(NamedTuple):
    """The caller's network, and the browser's identifying cookie ("" if there is none)."""

    network: str
    browser: str


class UnexpectedAnswer(errors.Forbidden):
    """A provider's answer belongs to an unknown or ended flow, or to another browser's flow."""

    code = "bad-state"


def client(
    provider: providers.Provider, settings: config.Settings, out: safe_http.HttpClient
) -> oidc_client.OidcClient:
    """Make the client for a provider.

    Raises:
        errors.Conflict: `PUBLIC_URL` is not set.
    """
    if not settings.public_url:
        raise errors.Conflict("no-public-url")
    return oidc_client.OidcClient(provider, f"{settings.public_url}/{RETURN}", out)


def begin(
    goal: Goal, who: Browser, peer: oidc_client.OidcClient, *, secret: str, now: datetime
) -> Redirect:
    """Start a login flow.

    Raises:
        errors.TooMany: the network has started too many flows.
        errors.Unreachable, oidc_client.NotBelieved: the provider does not answer, or its answer is
            not valid.
    """
    browser = who.browser if _BROWSER.fullmatch(who.browser) else secrets.token_urlsafe(32)
    asked = oidc_client.Secrets(
        one_time_links.new_token(), one_time_links.new_token(), one_time_links.new_token()
    )
    flow = LoginFlow(goal, _digest(browser, secret), asked.nonce, asked.verifier)
    content = encryption.seal(msgspec.json.encode(flow).decode(), _PURPOSE, secret, now=now)
    bucket = rate_limits.Network(PER_NETWORK, who.network, secret)
    one_time_links.sweep(now=now)

    def body() -> None:
        rate_limits.read(bucket, now=now)
        if bucket.is_empty:
            raise errors.TooMany(retry_after=bucket.wait(now))
        purpose = one_time_links.LinkPurpose.JOURNEY
        issued = one_time_links.issue_writes(
            asked.state, purpose, content, secret, now=now, term=TERM
        )
        transactions.apply(bucket.count_writes(), issued)

    transactions.transaction(body)
    return Redirect(peer.login_address(asked), browser)


def end(
    state: str, browser: str, *, secret: str, now: datetime
) -> tuple[LoginFlow, oidc_client.Secrets]:
    """End the login flow with this `state`. Return the flow and the values to check the answer.

    Raises:
        UnexpectedAnswer: the flow does not exist, belongs to a different browser, or has already
            ended or expired.
    """
    attempt = one_time_links.new_token()

    def body() -> LoginFlow:
        content, used = one_time_links.use_writes(
            state, one_time_links.LinkPurpose.JOURNEY, attempt, secret, now=now
        )
        text = encryption.unseal(content, _PURPOSE, secret, now=now)
        flow = decoders.json(LoginFlow).decode(text)
        if not browser or not keyed_hashes.is_one(flow.browser, secret, "browser", browser):
            raise UnexpectedAnswer
        transactions.apply(used)
        return flow

    try:
        flow = transactions.transaction(body)
    except errors.BadLink as error:
        raise UnexpectedAnswer from error
    return flow, oidc_client.Secrets(state, flow.nonce, flow.verifier)


def _digest(browser: str, secret: str) -> str:
    return keyed_hashes.text(keyed_hashes.keyed_digest(secret, "browser", browser))
