"""Take a byte-for-byte snapshot of the store; equal snapshots mean that nothing has changed."""

from comments.store import reads
from tests.support import stored_state

# Snapshots omit sessions, because each of a test's browsers signs in with a separate session.
SESSIONS = "Session"
_VISITS = ("visited", "visited_before")  # Home notes them; no decision depends on them.


def everything(*without: str) -> dict[bytes, bytes]:
    """Return every entity by key, without visits of the console and without the given kinds."""
    snapshot = {}
    for kind in stored_state.kind_names():
        for row in reads.fetch(reads.Query(kind)) if kind not in without else ():
            for name in _VISITS if kind == "Account" else ():
                row.properties.pop(name, None)
            key = row.key.SerializeToString(deterministic=True)
            snapshot[key] = row.SerializeToString(deterministic=True)
    return snapshot
