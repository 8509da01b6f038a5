"""Simulate login providers and browsers for tests.

`Impostor` follows the protocol like a real provider, except for what a test changes: its ID tokens'
claims, header and signature, and its documents. `Traveller` is a test client that follows our
redirect to the provider, makes the provider issue a code, and returns with the code.
"""

import base64
import contextlib
import hashlib
import hmac
import html
import json
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import flask
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config
from comments.accounts.oidc import oidc_client, providers
from comments.events import message_sender, safe_http
from comments.store import connection
from tests.support import loopback_servers
from tests.support.people.account_holders import PASSWORD, SECRET, here

CLIENT, CLIENT_SECRET = "flatthread", "a client's secret: 100% + 32 bytes or more"
PUBLIC = "http://localhost"
SETTINGS = config.Settings(secret=SECRET, public_url=PUBLIC, hosts=("localhost", "evil.example"))
ORIGIN = "http://localhost:8080"
OWN = {"Sec-Fetch-Site": "same-origin"}
RSA = rsa.generate_private_key(65537, 2048)
OTHER_RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def jwk(key: Any, kid: str) -> dict[str, str]:
    """Return a key's public half as a provider publishes it."""
    is_rsa = isinstance(key, rsa.RSAPrivateKey)
    algorithm = jwt.algorithms.RSAAlgorithm if is_rsa else jwt.algorithms.ECAlgorithm
    made = json.loads(algorithm.to_jwk(key.public_key()))
    return {**made, "kid": kid, "use": "sig"}


class Impostor:
    """A provider. `claims` and `header` change the provider's tokens; None removes a claim."""

    def __init__(self, told: loopback_servers.Receiver) -> None:
        self.issuer = f"http://{loopback_servers.NAME}:{told.port}"
        self.told = told
        self.sub: Any = "ann"
        self.claims: dict[str, Any] = {}
        self.document: dict[str, Any] = {}
        self.keys: list[dict[str, Any]] = [jwk(RSA, "one")]
        self.userinfo: Any = None
        self.sign: Callable[[dict[str, Any]], str] = self.honest
        self.token_answer: tuple[int, bytes] | None = None
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        told.then = self._answer

    def authorize(self, address: str) -> str:
        """Return the code that a browser gets if it was redirected to this address."""
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
        assert address.startswith(f"{self.issuer}/authorize?")
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert "email" not in asked["scope"]
        code = f"code{len(self.codes)}"
        self.codes[code] = asked
        return code

    def honest(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, RSA, algorithm="RS256", headers={"kid": "one"})

    def said(self, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token."""
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT, "sub": self.sub, "nonce": nonce,
            "iat": now, "exp": now + 300, **self.claims,
        }  # fmt: skip
        return {name: value for name, value in claims.items() if value is not None}

    def _answer(self, heard: loopback_servers.Heard) -> None:
        path = urllib.parse.urlsplit(heard.path).path
        self.asked.append(path)
        status, body = self._pages(heard).get(path, lambda: (404, b""))()
        self.told.status, self.told.answer = status, body

    def _pages(
        self, heard: loopback_servers.Heard
    ) -> Mapping[str, Callable[[], tuple[int, bytes]]]:
        return {
            "/.well-known/openid-configuration": lambda: _json(self._document()),
            "/keys": lambda: _json({"keys": self.keys}),
            "/token": lambda: self.token_answer or self._token(heard),
            "/me": lambda: _json(self.userinfo) if self.userinfo is not None else (401, b"{}"),
        }

    def _document(self) -> dict[str, Any]:
        made = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/me",
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            **self.document,
        }
        return {name: value for name, value in made.items() if value is not None}

    def _token(self, heard: loopback_servers.Heard) -> tuple[int, bytes]:
        sent = dict(urllib.parse.parse_qsl(heard.body.decode()))
        asked = self.codes.pop(sent.get("code", ""), None)
        if asked is None or not self._is_client(heard, sent):
            return 400, b'{"error": "invalid_grant"}'
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        if _b64(digest) != asked["code_challenge"] or sent["redirect_uri"] != asked["redirect_uri"]:
            return 400, b'{"error": "invalid_grant"}'
        token = self.sign(self.said(asked["nonce"]))
        return _json({"access_token": "an-access-token", "token_type": "Bearer", "id_token": token})

    def _is_client(self, heard: loopback_servers.Heard, sent: Mapping[str, str]) -> bool:
        if "client_secret" in sent:
            return (sent["client_id"], sent["client_secret"]) == (CLIENT, CLIENT_SECRET)
        given = base64.b64decode(heard.headers["Authorization"].removeprefix("Basic ")).decode()
        return tuple(map(urllib.parse.unquote_plus, given.split(":", 1))) == (CLIENT, CLIENT_SECRET)


def unsigned(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    """Return a token with any header and signature."""
    parts = (json.dumps(each).encode() for each in (header, claims))
    return ".".join([*map(_b64, parts), _b64(signature)])


def swapped(claims: dict[str, Any], secret: bytes) -> str:
    """Return a token that is signed by HMAC with a public key as the shared secret."""
    head = unsigned({"alg": "HS256", "typ": "JWT", "kid": "one"}, claims).rpartition(".")[0]
    return f"{head}.{_b64(hmac.digest(secret, head.encode(), 'sha256'))}"


def _json(value: object) -> tuple[int, bytes]:
    return 200, json.dumps(value).encode()


@contextlib.contextmanager
def impostor(store: connection.Store) -> Iterator[Impostor]:
    """Run a provider that services on this store may connect to."""
    with loopback_servers.receiver() as told:
        client = loopback_servers.client(told.port, limits=safe_http.RequestLimits(total=30.0))
        message_sender.OUTBOUND.put(store, client)
        yield Impostor(told)


def register(
    found: Impostor, name: str = "acme", *, sites: tuple[str, ...] = ("demo",), at_desk: bool = True
) -> providers.Provider:
    """Register the provider with this service."""
    given = providers.Registration(name, name.capitalize(), found.issuer, CLIENT, CLIENT_SECRET)
    providers.add(providers.make(given, SECRET, now=here()))
    return providers.offer(name, sites, at_desk=at_desk)


def know(store: connection.Store) -> providers.Provider:
    """Register a provider and cache its documents, so that the service sends no requests."""
    issuer = "https://acme.example"
    about = oidc_client._About(issuer, f"{issuer}/authorize", f"{issuer}/token", f"{issuer}/keys")
    known = oidc_client._Configuration(about, {"keys": []})
    oidc_client.COPIES.of(store).keep(issuer, known)
    given = providers.Registration("acme", "Acme", issuer, CLIENT, CLIENT_SECRET)
    providers.add(providers.make(given, SECRET, now=here()))
    return providers.offer("acme", ("demo",), at_desk=True)


class Traveller:
    """A browser that is redirected to a provider and comes back."""

    def __init__(self, app: flask.Flask, found: Impostor) -> None:
        self.client: FlaskClient = app.test_client()
        self.provider = found

    def send(self, path: str, **form: str) -> TestResponse:
        return self.client.post(path, data=form, headers=OWN)

    def way(self, path: str, **form: str) -> str:
        """Return the address to which a form redirects."""
        response = self.send(path, **form)
        assert response.status_code == 200, response.text
        found = re.search(r'content="0; url=([^"]+)"', response.text)
        assert found
        return html.unescape(found[1])

    def back(self, address: str, **changed: str) -> TestResponse:
        """Return from the provider with its answer, after replacing the parts in `changed`."""
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
        assert asked["redirect_uri"] == f"{PUBLIC}/sign-in/return"
        answer = {"code": self.provider.authorize(address), "state": asked["state"]} | changed
        query = {name: value for name, value in answer.items() if value}
        return self.client.get("/sign-in/return", query_string=query)

    def travel(self, path: str, **form: str) -> TestResponse:
        return self.back(self.way(path, **form))

    def form(self) -> str:
        """Return the form token of the account that is signed in with this browser."""
        found = re.search(r'name="form" value="([a-z2-7]{52})"', self.client.get("/admin").text)
        assert found
        return found[1]

    def sign_in(self, login: str = "ann") -> None:
        """Sign in with a password."""
        sent = self.send("/admin/sign-in", login=login, password=PASSWORD)
        assert sent.status_code == 303, sent.text

    def link(self) -> TestResponse:
        """Link the signed-in account to the account at the provider."""
        return self.travel(
            "/admin/account/provider", form=self.form(), current=PASSWORD, provider="acme"
        )

    def window(self, challenge: str, *, site: str = "demo", origin: str = ORIGIN) -> TestResponse:
        """Sign a reader in through a pop-up window; return the page that shows the code."""
        return self.travel(
            f"/sign-in/sites/{site}", provider="acme", origin=origin, challenge=challenge
        )


VERIFIER = "v" * 43


def challenge_of(verifier: str = VERIFIER) -> str:
    return _b64(hashlib.sha256(verifier.encode()).digest())


def code_of(response: TestResponse) -> str:
    found = re.search(r'id="code"[^>]*>([a-z2-7]{4} [a-z2-7]{4})<', response.text)
    assert found, response.text
    return found[1]
