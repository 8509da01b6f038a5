"""Proofs of work for posts, requested and solved before a measurement.

A challenge counts for the network that requests it, and a network can post 500 times an hour. Each
measurement therefore requests its challenges from an own address, which counts as a network.
"""

import base64
import hashlib
import itertools
import json
from typing import Any

from benchmarks import clients, stock

MOST = 500  # Proofs that a network can use within an hour.
_ADDRESSES = (f"127.{one}.{two}.1" for one in range(1, 256) for two in range(256))


def solved(port: int, count: int) -> list[str]:
    """Return solutions of new challenges, from as many networks as they need."""
    path = f"/api/v1/sites/{stock.SITE}/challenge"
    way = clients.Way(path, port, clients.request(path))
    found: list[str] = []
    for first in range(0, count, MOST):
        with clients.connected(port, next(_ADDRESSES)) as connection:
            found += [
                solution(json.loads(connection.fetch(way)[0]))
                for _ in range(min(MOST, count - first))
            ]
    return found


def solution(challenge: dict[str, Any]) -> str:
    """Solve a challenge as the widget does."""
    begun = hashlib.sha256(challenge["salt"].encode())
    for number in itertools.count():
        tried = begun.copy()
        tried.update(str(number).encode())
        if tried.hexdigest() == challenge["challenge"]:
            break
    said = {name: challenge[name] for name in ("algorithm", "challenge", "salt", "signature")}
    return base64.b64encode(json.dumps({**said, "number": number}).encode()).decode()
