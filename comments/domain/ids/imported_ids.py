"""Stable ids of imported comments and their authors: every import gives the same ids (pure).

If an operator imports an export of Flatthread, each comment keeps its id, unless another website of
the service already uses this id. Comments whose ids are in use already, and all comments of an
export that an owner uploads, get the ids that `comment_id` derives for the system `OWN`. The same
function derives the stored id from the former id, so no stored row is needed to find such a comment
by its former id.
"""

import hashlib

from comments.domain.crypto import keyed_hashes
from comments.domain.ids import author_ids

OWN = "flatthread"


def comment_id(site: str, system: str, source_id: str) -> str:
    """Return the stable id of an imported comment: every import gives the same id."""
    # This code must never change: if it returned different ids, a repeated import would add every
    # comment again.
    digest = hashlib.sha256()
    for part in (site, system, source_id):
        data = part.encode()
        digest.update(len(data).to_bytes(4, "big") + data)
    return keyed_hashes.text(digest.digest())


def author_ids_of(secret: str, site: str, *known: str) -> list[str]:
    """Return an imported author's possible ids: first under the current secret, then older ones."""
    made = keyed_hashes.every(secret, "imported author", site, *known)
    return [author_ids.IMPORTED + keyed_hashes.text(digest) for digest in made]


def author_ids_of_address(secret: str, site: str, address: str) -> list[str]:
    """Return the possible ids of the author who was imported with a mail address."""
    return author_ids_of(secret, site, "mail", address.strip().lower())
