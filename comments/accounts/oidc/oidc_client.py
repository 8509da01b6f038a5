"""Talk to an OpenID Connect provider, and identify the person who signs in.

This module implements OpenID Connect Core 1.0, authorization code flow with PKCE (RFC 7636, S256),
`state`, `nonce` and, if the provider announces it, `iss` (RFC 9207). All requests are sent through
`safe_http`.

Identities come only from ID tokens (`id_tokens`), as issuer and `sub`. The provider may also be
asked for the name, which is used only if the response has the same `sub`. Mail addresses, verified
or not, are neither requested nor used to find accounts.
"""

import base64
import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple, TypeVar
from urllib.parse import quote_plus, urlencode

import msgspec

from comments import errors
from comments.accounts import identities
from comments.accounts.oidc import id_tokens, providers
from comments.accounts.oidc.id_tokens import NotBelieved
from comments.domain import decoders
from comments.domain.languages import error_texts
from comments.domain.text import cleaning
from comments.events import safe_http
from comments.store.memory import caches, per_process

T = TypeVar("T")

SCOPE = "openid profile"
_TERM = 600.0  # Seconds for which a provider's document and keys are cached.
_MOST_COPIES = 1_000  # Maximum number of cached providers.
AGAIN = 30.0  # Minimum seconds between key requests when a token's key is missing.
_LONGEST_CODE = 4_000
_JSON = {"Accept": "application/json"}
_OK, _REFUSED, _FAULT = 200, 400, 500
_POST = "client_secret_post"
_NAMES = ("name", "nickname", "preferred_username")


class Declined(errors.Forbidden):
    """The provider did not identify the person, for example because the person declined."""

    code = "provider-declined"


class Secrets(NamedTuple):
    """The random values of one sign-in: state, nonce and PKCE verifier."""

    state: str
    nonce: str
    verifier: str


class ProviderUser(msgspec.Struct, frozen=True):
    """A person identified by a provider. `name` is a valid display name, or empty."""

    identity: identities.Identity
    name: str


class _About(msgspec.Struct, frozen=True):
    """The fields used from a provider's configuration document (OpenID Connect Discovery 1.0)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _Configuration(NamedTuple):
    """A provider's configuration document and keys."""

    about: _About
    keys: dict[str, object]


COPIES = per_process.PerProcess(lambda: caches.Cache[str, _Configuration](_MOST_COPIES, _TERM))


class OidcClient:
    """A client for one provider."""

    def __init__(
        self, provider: providers.Provider, redirect: str, out: safe_http.HttpClient
    ) -> None:
        self._provider = provider
        self._redirect = redirect
        self._out = out

    def check(self) -> None:
        """Check that the provider answers and that its document is valid.

        Raises:
            errors.Unreachable: the provider does not answer, or its answer is malformed.
            NotBelieved: the document names a different issuer, or contains a non-public address.
        """
        with self._public_addresses_only():
            self._configuration(within=0)

    def login_address(self, secrets: Secrets) -> str:
        """Return the address at the provider to which the browser must be redirected.

        Raises:
            errors.Unreachable, NotBelieved: see `check`.
        """
        with self._public_addresses_only():
            start = self._configuration().about.authorization_endpoint
        query = {
            "response_type": "code",
            "client_id": self._provider.client,
            "redirect_uri": self._redirect,
            "scope": SCOPE,
            "state": secrets.state,
            "nonce": secrets.nonce,
            "code_challenge": _challenge(secrets.verifier),
            "code_challenge_method": "S256",
        }
        return f"{start}{'&' if '?' in start else '?'}{urlencode(query)}"

    def identify(
        self, answer: Mapping[str, str], asked: Secrets, *, secret: str, now: datetime
    ) -> ProviderUser:
        """Verify the parameters of a provider's redirect, and return the person who signs in.

        Raises:
            Declined: the provider did not identify the person.
            NotBelieved: the response is not from this provider, not for this client, or not for
                this sign-in.
            errors.Unreachable: see `check`.
            errors.BadLink: the client secret was encrypted under a different secret of the service.
        """
        with self._public_addresses_only():
            about = self._configuration().about
            code = self._code(answer, about)
            tokens = self._tokens(code, asked.verifier, about, secret=secret, now=now)
            id_claims = self._claims(tokens.get("id_token"))
        access = tokens.get("access_token")
        issuer, client = self._provider.issuer, self._provider.client
        expected = id_tokens.Expected(issuer, client, asked.nonce, access)
        claims = id_tokens.check_claims(id_claims, expected, now=now)
        return self._person(claims, about, access)

    @contextlib.contextmanager
    def _public_addresses_only(self) -> Iterator[None]:
        """Raise `NotBelieved` if the provider's document contains a non-public address."""
        try:
            yield
        except errors.UnsafeAddress as error:
            reason = error_texts.sentence(error).removesuffix(".")
            raise NotBelieved(reason=reason) from error

    def _code(self, answer: Mapping[str, str], about: _About) -> str:
        """Check the redirect's parameters and return the authorization code."""
        issuer = answer.get("iss")
        is_missing = issuer is None and about.authorization_response_iss_parameter_supported
        if is_missing or issuer not in {None, about.issuer}:
            raise NotBelieved(reason="the response is from a different provider")
        if "error" in answer:
            raise Declined(provider=self._provider.title)
        code = answer.get("code", "")
        if not code or len(code) > _LONGEST_CODE:
            raise NotBelieved(reason="the response has no code")
        return code

    def _tokens(
        self, code: str, verifier: str, about: _About, *, secret: str, now: datetime
    ) -> Mapping[str, object]:
        """Exchange the authorization code for tokens."""
        client = self._provider.client
        opened = providers.client_secret(self._provider, secret, now=now)
        headers = {**_JSON, "Content-Type": "application/x-www-form-urlencoded"}
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect,
            "code_verifier": verifier,
        }
        # Send the secret in the form if possible, because providers differ in how they unescape a
        # secret in a header.
        if _POST in about.token_endpoint_auth_methods_supported:
            form |= {"client_id": client, "client_secret": opened}
        else:
            pair = f"{quote_plus(client)}:{quote_plus(opened)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        body = urlencode(form).encode()
        answer = self._out.send("POST", about.token_endpoint, body=body, headers=headers)
        tokens = _content(answer, dict[str, object])
        if answer.status >= _REFUSED or "error" in tokens:
            raise NotBelieved(reason="the provider refused the code that it had issued")
        return tokens

    def _claims(self, token: object) -> bytes:
        """Check the token with the cached keys. If no key matches, fetch the keys again."""
        known = self._configuration()
        try:
            return id_tokens.verify_signature(token, known.keys)
        except NotBelieved:
            fresh = self._configuration(within=AGAIN)
            if fresh is known:
                raise
            return id_tokens.verify_signature(token, fresh.keys)

    def _person(self, claims: Mapping[str, object], about: _About, access: object) -> ProviderUser:
        subject = str(claims["sub"])
        provider = identities.at_issuer(self._provider.issuer)
        try:
            identity = identities.of_provider(provider, subject)
        except errors.BadInput as error:
            raise NotBelieved(reason="the subject of the ID token is not valid") from error
        return ProviderUser(identity, _name(claims) or self._ask_name(subject, about, access))

    def _ask_name(self, subject: str, about: _About, access: object) -> str:
        """Ask the provider's userinfo endpoint for a name. Return "" if there is none."""
        is_plain = isinstance(access, str) and access.isascii() and access.isprintable()
        if not about.userinfo_endpoint or not is_plain:
            return ""
        headers = {"Accept": "application/json", "Authorization": f"Bearer {access}"}
        # Do not let a missing name fail the sign-in: the person is then asked for a name.
        with contextlib.suppress(errors.Unreachable, errors.UnsafeAddress):
            userinfo = self._fetch(about.userinfo_endpoint, dict[str, object], headers)
            if userinfo.get("sub") == subject:
                return _name(userinfo)
        return ""

    def _configuration(self, *, within: float | None = None) -> _Configuration:
        copies = COPIES.get()
        known = copies.get(self._provider.issuer, within=within)
        if known is None:
            known = self._read_configuration()
            copies.keep(self._provider.issuer, known)
        return known

    def _read_configuration(self) -> _Configuration:
        issuer = self._provider.issuer
        where = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        about = self._fetch(where, _About)
        if about.issuer != issuer:
            raise NotBelieved(reason=f"the issuer is {about.issuer[:200]}, not {issuer}")
        self._out.check(about.authorization_endpoint)
        keys = self._fetch(about.jwks_uri, dict[str, object])
        return _Configuration(about, keys)

    def _fetch(self, url: str, kind: type[T], headers: Mapping[str, str] = _JSON) -> T:
        answer = self._out.send("GET", url, headers=headers)
        if answer.status != _OK:
            raise errors.Unreachable("bad-provider-answer")
        return _content(answer, kind)


def _content(answer: safe_http.HttpResponse, kind: type[T]) -> T:
    try:
        if answer.status < _FAULT and not answer.is_cut:
            return decoders.decode(answer.body, kind)
    except msgspec.DecodeError:
        pass
    raise errors.Unreachable("bad-provider-answer")


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _name(claims: Mapping[str, object]) -> str:
    """Return the first valid display name among the claims, or ""."""
    for claim in _NAMES:
        name = claims.get(claim)
        with contextlib.suppress(errors.BadInput):
            if isinstance(name, str):
                return cleaning.clean_name(name)
    return ""
