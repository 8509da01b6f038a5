"""Single bytes that are not UTF-8 are read as Windows-1252; anything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.transfer.parsing import stray_bytes


@given(st.text())
def test_text_in_utf_8_is_unchanged(text: str) -> None:
    assert stray_bytes.decode("x", 1, text.encode(errors="replace")) == (
        text.encode(errors="replace").decode(),
        0,
    )


@given(st.lists(st.sampled_from("äéñ€œa中 "), max_size=20))
def test_single_bytes_between_characters_are_read(letters: list[str]) -> None:
    data, expected = b"", ""
    for letter in letters:
        data += b"-" + letter.encode("cp1252" if letter != "中" else "utf-8")
        expected += "-" + letter
    strays = sum(letter in "äéñ€œ" for letter in letters)
    assert stray_bytes.decode("x", 1, data) == (expected, strays)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("你好".encode("gbk"), "not UTF-8; convert"),
        ("é".encode() + b"\x81", "not UTF-8; convert"),
        ("id".encode("utf-16"), "UTF-16; convert"),
    ],
)
def test_other_encodings_are_refused_with_their_place(data: bytes, reason: str) -> None:
    with pytest.raises(errors.BadImport, match=f"x, row 7: .*{reason}"):
        stray_bytes.decode("x", 7, data, "row")
