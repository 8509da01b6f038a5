"""An authenticator in software: it makes passkeys and signs challenges as browsers do."""

import dataclasses
import hashlib
import json
import secrets
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from webauthn.helpers import bytes_to_base64url, encode_cbor

_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


@dataclasses.dataclass
class Authenticator:
    """One passkey. Change the fields to answer wrongly."""

    origin: str = "http://localhost"
    party: str = "localhost"
    flags: int = _PRESENT | _VERIFIED
    count: int = 0
    user: bytes = b""
    credential: bytes = dataclasses.field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = dataclasses.field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def create(self, options: str) -> str:
        """Make the passkey for a service's options, and return the answer as JSON."""
        asked = json.loads(options)
        self.user = asked["user"]["id"].encode()
        numbers = self.key.public_key().public_numbers()
        public = encode_cbor(
            {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
        )
        length = len(self.credential).to_bytes(2)
        data = self._data(_ATTESTED) + bytes(16) + length + self.credential + public
        attestation = encode_cbor({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", asked["challenge"])
        return self._answer({"clientDataJSON": client, "attestationObject": attestation})

    def get(self, options: str) -> str:
        """Sign a service's challenge, and return the answer as JSON."""
        client = self._client("webauthn.get", json.loads(options)["challenge"])
        data = self._data(0)
        signed = data + hashlib.sha256(client).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        answer = {"clientDataJSON": client, "authenticatorData": data, "signature": signature}
        return self._answer(answer, userHandle=self.user.decode())

    def _client(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _data(self, more: int) -> bytes:
        party = hashlib.sha256(self.party.encode()).digest()
        return party + bytes([self.flags | more]) + self.count.to_bytes(4)

    def _answer(self, response: dict[str, bytes], **more: str) -> str:
        name = bytes_to_base64url(self.credential)
        encoded: dict[str, Any] = {
            key: bytes_to_base64url(value) for key, value in response.items()
        }
        return json.dumps(
            {"id": name, "rawId": name, "type": "public-key", "response": encoded | more}
        )
