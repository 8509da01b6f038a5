"""Avatars have the same initials and colors as in the widget.

`tests/browser/test_embed_page.py` compares them with the widget's.
"""

import pytest

from comments.web.public import avatars

# Readers recognize authors by their colors, so a change of these values would confuse them.
GOLDEN = {
    "Ada": ("A", 4),
    "Ada Lovelace": ("AL", 1),
    "ada.lovelace": ("AL", 7),
    "  Grace   Brewster  Hopper ": ("GH", 1),
    "x-_-y": ("XY", 7),
    "Anonymous": ("A", 5),
    "أحمد علي": ("أع", 10),
    "田中 太郎": ("田太", 8),
    "e\u0301mile zola": ("E\u0301Z", 11),
    "ßmith": ("SS", 5),
    "7 of 9": ("79", 10),
    "(Bob)": ("B", 8),
    "🎈 Ann 🎈": ("A", 3),
    "\U0001d49e ok": ("\U0001d49eO", 1),
    "🎈🎈": ("", 2),
    "a\u00a0b": ("AB", 10),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_initials_and_colors_never_change(name: str) -> None:
    assert (avatars.initials_of(name), avatars.hue_of(name)) == GOLDEN[name]
