"""Avatars have the same initials and colors as in the widget.

`tests/browser/test_embed_page.py` compares them with the widget's.
"""

import pytest

from comments.web.public import avatars

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
