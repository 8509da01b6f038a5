"""Make site keys of both kinds and valid tokens that a site signs for its readers."""

from datetime import datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from comments.accounts import site_keys
from tests.support.people.account_holders import SECRET, here

Private = ed25519.Ed25519PrivateKey


def share(site: str = "demo") -> str:
    """Add a secret that the site shares with the service."""
    key, secret = site_keys.make_shared(SECRET, now=here())
    site_keys.add(site, key)
    return secret


def pem_of(private: Private) -> str:
    return (
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def pair(site: str = "demo") -> Private:
    """Add a key pair; the site keeps the private half."""
    private = Private.generate()
    site_keys.add(site, site_keys.make_public(pem_of(private), now=here()))
    return private


def claims(now: datetime | None = None, **more: Any) -> dict[str, Any]:
    """Return valid claims. `more` replaces some claims; the value None removes a claim."""
    exp = int(((now or here()) + timedelta(hours=1)).timestamp())
    found = {"aud": "flatthread:demo", "sub": "42", "name": "Ann", "exp": exp} | more
    return {name: value for name, value in found.items() if value is not None}


def token(key: Any, algorithm: str = "HS256", **more: Any) -> str:
    return jwt.encode(claims(**more), key, algorithm=algorithm)
