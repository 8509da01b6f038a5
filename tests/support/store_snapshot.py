"""Everything that is stored, byte by byte: where nothing was changed, two of these are the same."""

from comments.store import reads
from tests.support import stored_state

# A browser of a test's is signed in by a session of its own, so these come and go with the tests.
SESSIONS = "Session"


def everything(*without: str) -> dict[bytes, bytes]:
    """Each entity of each kind, but for some kinds, by its key."""
    kinds = {each.key.path[0].name for each in stored_state.rows("__kind__")}
    return {
        row.key.SerializeToString(deterministic=True): row.SerializeToString(deterministic=True)
        for kind in sorted(kinds - set(without))
        if not kind.startswith("__")
        for row in reads.fetch(reads.Query(kind))
    }
