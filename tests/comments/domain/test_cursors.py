"""Cursors from earlier releases stay valid, and cursors from different listings are refused."""

import hashlib
import json

import pytest
from itsdangerous import URLSafeSerializer
from itsdangerous.encoding import base64_encode

from comments import errors
from comments.domain.crypto import cursors

SECRET = "a secret of the cursors"
LISTING = cursors.label("demo", "page", "thread", "")
SHORT = ["AAABACADAE"]
LONG = ["AA" + "AB" * 200]  # long enough for the library to compress it


@pytest.mark.parametrize("position", [SHORT, LONG, ["ranking", "AB", ""], [], ["é\0" * 50]])
def test_a_position_survives_encoding_by_this_and_earlier_releases(position: list[str]) -> None:
    before = str(URLSafeSerializer(SECRET, salt=f"cursor\0{LISTING}").dumps(position))
    for cursor in (before, cursors.seal(position, LISTING, SECRET)):
        assert cursors.unseal(cursor, LISTING, SECRET) == position
        for listing, secret in ((LISTING + "x", SECRET), ("", SECRET), (LISTING, SECRET + "x")):
            with pytest.raises(errors.BadCursor):
                cursors.unseal(cursor, listing, secret)


def test_the_signature_of_a_cursor_is_stable() -> None:
    """A change would invalidate the cursors in links and open pages."""
    sealed = cursors.seal(SHORT, LISTING, SECRET)
    assert sealed == "WyJBQUFCQUNBREFFIl0.Z3zApk1i-D16S4twOFI0238IG_Y"


def test_a_long_uncompressed_cursor_is_valid() -> None:
    """Earlier releases wrote all cursors uncompressed."""
    plain = URLSafeSerializer(
        SECRET,
        salt=f"cursor\0{LISTING}",
        signer_kwargs={"digest_method": hashlib.blake2b, "algorithm": cursors.Keyed()},
    )
    coded = base64_encode(json.dumps(LONG, separators=(",", ":")))
    before = plain.make_signer(plain.salt).sign(coded).decode()
    assert not before.startswith(".")
    assert cursors.seal(LONG, LISTING, SECRET).startswith(".")
    assert cursors.unseal(before, LISTING, SECRET) == LONG


@pytest.mark.parametrize("cursor", ["", ".", "x", "a.b.c", ".x.y", "é", "W10", "\0"])
def test_an_invalid_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(errors.BadCursor):
        cursors.unseal(cursor, LISTING, SECRET)
