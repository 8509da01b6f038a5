"""Positions survive encoding, and cursors from different listings are refused."""

import pytest

from comments import errors
from comments.domain.crypto import cursors

SECRET = "a secret of the cursors"
LISTING = cursors.label("demo", "page", "thread", "")
SHORT = ["AAABACADAE"]
LONG = ["AA" + "AB" * 200]  # Long enough for the library to compress it


@pytest.mark.parametrize("position", [SHORT, LONG, ["ranking", "AB", ""], [], ["é\0" * 50]])
def test_a_position_survives_encoding(position: list[str]) -> None:
    cursor = cursors.seal(position, LISTING, SECRET)
    assert cursors.unseal(cursor, LISTING, SECRET) == position
    for listing, secret in ((LISTING + "x", SECRET), ("", SECRET), (LISTING, SECRET + "x")):
        with pytest.raises(errors.BadCursor):
            cursors.unseal(cursor, listing, secret)


def test_the_signature_of_a_cursor_is_stable() -> None:
    """A change would invalidate the cursors in links and open pages."""
    sealed = cursors.seal(SHORT, LISTING, SECRET)
    assert sealed == "WyJBQUFCQUNBREFFIl0.Z3zApk1i-D16S4twOFI0238IG_Y"


@pytest.mark.parametrize("cursor", ["", ".", "x", "a.b.c", ".x.y", "é", "W10", "\0"])
def test_an_invalid_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(errors.BadCursor):
        cursors.unseal(cursor, LISTING, SECRET)
