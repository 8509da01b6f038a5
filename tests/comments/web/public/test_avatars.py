"""Avatars have the same initials and colors as in the widget.

`tests/browser/test_embed_page.py` compares them with the widget's.
"""

import pytest

from comments.web.embedding import avatars

# Readers recognize authors by their colors, so a change of these values would confuse them.
GOLDEN = {
    "Ada": ("A", (4, 1)),
    "Ada Lovelace": ("AL", (1, 1)),
    "ada.lovelace": ("AL", (7, 0)),
    "  Grace   Brewster  Hopper ": ("GH", (1, 0)),
    "x-_-y": ("XY", (7, 1)),
    "Anonymous": ("A", (5, 0)),
    "أحمد علي": ("أع", (10, 0)),
    "田中 太郎": ("田", (8, 0)),
    "e\u0301mile zola": ("E\u0301Z", (11, 1)),
    "ßmith": ("SS", (5, 0)),
    "7 of 9": ("79", (10, 1)),
    "山本": ("山", (3, 1)),
    "李 Bruce": ("李", (8, 0)),
    "(Bob)": ("B", (8, 1)),
    "🎈 Ann 🎈": ("A", (3, 0)),
    "\U0001d49e ok": ("\U0001d49eO", (1, 0)),
    "🎈🎈": ("", (2, 1)),
    "a\u00a0b": ("AB", (10, 1)),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_initials_and_colors_never_change(name: str) -> None:
    assert (avatars.initials_of(name), avatars.color_of(name)) == GOLDEN[name]


@pytest.mark.parametrize(
    ("letter", "is_wide"),
    [
        ("\u10ff", False), ("\u1100", True), ("\u11ff", True), ("\u1200", False),
        ("\u3006", False), ("\u3041", True), ("\u30ff", True), ("\u3105", False),
        ("\u3400", True), ("\u9fff", True), ("\ua000", False),
        ("\uabff", False), ("\uac00", True), ("\ud7a3", True),
        ("\uf900", True), ("\ufad9", True), ("\ufb00", False),
    ],
)  # fmt: skip
def test_a_wide_first_letter_stands_alone(letter: str, is_wide: bool) -> None:
    assert (avatars.initials_of(f"{letter} 1") == letter) == is_wide
