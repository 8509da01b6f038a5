"""Test server.framing: however a chunked body is split, it is read as gunicorn reads it."""

import itertools
from collections.abc import Iterable

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.http import body, errors, unreader  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from server import framing, heads

SETTINGS = heads.settings(Config())
HEAD = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET / HTTP/1.1\r\n\r\n"
EXTENSIONS = st.sampled_from([b"", b";a", b" ; a=b", b';a="b;c"', b"; a = b ;c"])
TRAILERS = st.sampled_from([b"", b"X-Sum: 1\r\n", b"A: b\r\nC: d\r\n"])


@st.composite
def chunked(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Draw a body; return it both plain and chunked."""
    parts = draw(st.lists(st.binary(min_size=1, max_size=40), max_size=5))
    sent = b""
    for part in parts:
        size = draw(st.sampled_from(["%x", "%X", "0%x", "000%x"])) % len(part)
        sent += size.encode() + draw(EXTENSIONS) + b"\r\n" + part + b"\r\n"
    return b"".join(parts), sent + b"0" + draw(EXTENSIONS) + b"\r\n" + draw(TRAILERS) + b"\r\n"


def request() -> object:
    return heads.parse(SETTINGS, HEAD, ("127.0.0.1", 1), 1)


def taken(pieces: Iterable[bytes], most: int = 10_000) -> tuple[bytes, bytes] | None:
    """Return the body that these pieces contain and the rest, or None if the body is incomplete."""
    found = request()
    chunks = framing.Chunks(lambda data: found.parse_headers(data, from_trailer=True), most)  # type: ignore[attr-defined]
    buffer, is_whole = bytearray(), False
    for piece in pieces:
        buffer += piece
        is_whole = chunks.take(buffer)
    return (bytes(chunks.body), bytes(buffer)) if is_whole else None


def by_gunicorn(data: bytes) -> tuple[bytes, bytes]:
    found, source = request(), unreader.IterUnreader([data])
    read = body.Body(body.ChunkedReader(found, source)).read()
    return read, source.take_buffered() + b"".join(source.iter or ())


@given(chunked(), st.lists(st.integers(0, 300), max_size=8))
def test_a_body_is_the_same_however_it_is_split(made: tuple[bytes, bytes], cuts: list[int]) -> None:
    whole, sent = made
    places = [0, *sorted(cuts), len(sent) + len(NEXT)]
    data = sent + NEXT
    pieces = [data[one:other] for one, other in itertools.pairwise(places)]
    assert taken(pieces) == (whole, NEXT)
    assert by_gunicorn(data) == (whole, NEXT)


@given(chunked(), st.data())
def test_damaged_chunks_are_read_as_gunicorn_reads_them(
    made: tuple[bytes, bytes], data: st.DataObject
) -> None:
    sent = bytearray(made[1])
    place = data.draw(st.integers(0, len(sent) - 1))
    damage = data.draw(st.sampled_from([b"", b"\r", b"\n", b"\r\n", b"+", b"_", b"x", b"0", b";"]))
    sent[place : place + data.draw(st.integers(0, 2))] = damage
    try:
        found = taken([bytes(sent) + NEXT])
    except errors.ParseException:
        return
    if found is not None:
        assert by_gunicorn(bytes(sent) + NEXT) == found


@pytest.mark.parametrize("size", [b"b", b"fffffffffffffff"])
def test_a_body_is_kept_only_up_to_its_limit(size: bytes) -> None:
    assert taken([size + b"\r\n" + b"x" * 30], most=10) == (b"x" * 11, b"x" * 19)


def test_an_endless_line_is_refused() -> None:
    with pytest.raises(errors.InvalidChunkSize):
        taken([b"1;" + b"a" * 5_000])


def test_an_empty_line_before_a_head_is_ignored() -> None:
    whole = b"\r\nGET / HTTP/1.1\r\n\r\n"
    for size in range(len(whole)):
        assert framing.head_end(bytearray(whole[:size]), 0) == -1
        assert framing.head_end(bytearray(whole), size) == len(whole)
