"""Ids of imported comments, which are the same in every import (pure).

If an operator imports an export of Flatthread, the comments keep their ids, except ids that another
website of the service uses already. These comments, and all comments of an export that an owner
uploads, get the ids that `comment_id` derives for the system `OWN`. No stored row is needed to find
such a comment by its former id: the same function leads from one to the other.
"""

import hashlib

from comments.domain.crypto import keyed_hashes

OWN = "flatthread"


def comment_id(site: str, system: str, source_id: str) -> str:
    """Return the id of an imported comment, which is the same in every import."""
    # This code must never change, because with different ids, a repeated import would add every
    # comment again.
    digest = hashlib.sha256()
    for part in (site, system, source_id):
        data = part.encode()
        digest.update(len(data).to_bytes(4, "big") + data)
    return keyed_hashes.text(digest.digest())
