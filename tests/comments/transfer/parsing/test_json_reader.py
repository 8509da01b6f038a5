"""The JSON reader streams its input, enforces limits, and reports faults by line or number."""

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.transfer import import_source
from comments.transfer.parsing import json_reader, record_fields, stray_bytes

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LETTERS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@pytest.fixture(params=[1, 7, 1 << 16], ids="chunks of {}".format)
def _chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a few characters at a time, so that values cross the ends of chunks."""
    monkeypatch.setattr(json_reader, "_CHUNK", request.param)


def file_of(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "letters.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def found(tmp_path: Path, content: str | bytes, prefix: str = "item") -> list[dict[str, Any]]:
    read = json_reader.items(file_of(tmp_path, content), prefix, what="a list of letters")
    return [values_of(fields) for fields in read]


def values_of(fields: record_fields.Fields) -> dict[str, Any]:
    return {name: fields._values[name] for name in fields.names}


def refused(reader: Iterator[object]) -> str:
    with pytest.raises(errors.BadImport) as caught:
        list(reader)
    return str(caught.value).rpartition("/")[2]


def refusal(tmp_path: Path, content: str | bytes, prefix: str = "item") -> str:
    path = file_of(tmp_path, content)
    return refused(json_reader.items(path, prefix, what="a list of letters", unit="letter"))


@pytest.mark.usefixtures("_chunks")
def test_the_objects_of_a_list_come_with_their_numbers(tmp_path: Path) -> None:
    path = file_of(tmp_path, ' [ {"id": 12, "é": [1.5, null]} ,\n{} ] ')
    first, second = json_reader.items(path, "item", what="a list")
    assert (first.number, values_of(first)) == (1, {"id": 12, "é": [1.5, None]})
    assert (second.number, values_of(second)) == (2, {})


@pytest.mark.usefixtures("_chunks")
def test_a_list_is_found_at_its_path_and_the_rest_is_skipped(tmp_path: Path) -> None:
    content = """{"version": 12, "data": {"Users": [{"id": "no"}], "Comment": [{"id": "a"}]},
    "Comment": [{"id": "no"}], "x": {}, "data": {"Comment": [{"id": "b"}]}, "y": [[1], {}]}"""
    assert found(tmp_path, content, "data.Comment.item") == [{"id": "a"}, {"id": "b"}]


@pytest.mark.parametrize("content", ["[]", "null"])
def test_an_empty_list_and_null_have_no_objects(tmp_path: Path, content: str) -> None:
    assert found(tmp_path, content) == []
    assert found(tmp_path, f'{{"list": {content}}}', "list.item") == []


@given(values=st.lists(LETTERS, max_size=5), chunk=st.integers(1, 50), ascii_=st.booleans())
def test_a_document_is_read_as_the_json_module_reads_it(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[dict[str, Any]],
    chunk: int,
    ascii_: bool,
) -> None:
    folder = tmp_path_factory.mktemp("letters")
    encoded = json.dumps(values, ensure_ascii=ascii_).encode(errors="surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_reader, "_CHUNK", chunk)
        assert found(folder, encoded) == json.loads(encoded)
        in_object = b'{"a": 1, "list": ' + encoded + b"}"
        assert found(folder, in_object, "list.item") == json.loads(encoded)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_accepted(tmp_path: Path, encoding: str) -> None:
    assert found(tmp_path, '[{"a": "é"}]'.encode(encoding)) == [{"a": "é"}]


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    assert found(tmp_path, gzip.compress(b'[{"a": 1}]')) == [{"a": 1}]


def test_truncated_and_damaged_gzip_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps([{"a": n} for n in range(1000)]).encode())
    assert "the compressed file is damaged or incomplete" in refusal(tmp_path, packed[:-20])
    damaged = packed[:50] + bytes([packed[50] ^ 255]) + packed[51:]
    assert "the compressed file is damaged or incomplete" in refusal(tmp_path, damaged)
    assert "the compressed file is damaged or incomplete" in refusal(tmp_path, b"\x1f\x8b")


def test_not_a_number_is_read_as_null(tmp_path: Path) -> None:
    assert found(tmp_path, '[{"a": NaN, "b": -Infinity}]') == [{"a": None, "b": None}]


def test_broken_utf_16_is_refused(tmp_path: Path) -> None:
    content = '[{"a": "é"}]'.encode("utf-16") + b"x"
    assert "the text is not valid utf-16" in refusal(tmp_path, content)


@pytest.mark.usefixtures("_chunks")
def test_a_stray_byte_is_read_as_windows_1252_and_noted(tmp_path: Path) -> None:
    path = file_of(tmp_path, b'[{"a": "\\udce9"}, {"a": "caf\xe9", "\x80": "\xc3\xa9"}, {}]')
    first, second, third = json_reader.items(path, "item", what="a list")
    assert values_of(second) == {"a": "café", "€": "é"}
    assert second.remarks == [import_source.Corrected(2, stray_bytes.CORRECTION)]
    assert (values_of(first), first.remarks) == ({"a": "\udce9"}, [])
    assert third.remarks == []


@pytest.mark.usefixtures("_chunks")
def test_text_in_another_encoding_is_refused_with_advice(tmp_path: Path) -> None:
    content = '[{"a": "b"},\n{"a": "评论"}]'.encode("gbk")
    assert "letters.json:2: invalid JSON: the text is not UTF-8; convert" in refusal(
        tmp_path, content
    )


@pytest.mark.usefixtures("_chunks")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "letters.json:1: invalid JSON: Expecting value at the end of the file"),
        ("{}", "letters.json: the file is not a list of letters: it is not a JSON list"),
        ('[\n{"a": 1}', 'expected "," or "]" at the end of the file'),
        ('[\n{"a": 1}\n{}]', 'letters.json:3: invalid JSON: expected "," or "]" near \'{}]\''),
        ('[\n{"a": 1},\n{"a": "x', "letters.json:3: invalid JSON: Unterminated string"),
        ('[{"a": 1},]', "letters.json:1: invalid JSON: Expecting value near ']'"),
        ('[{"a" 1}]', "letters.json:1: invalid JSON: Expecting ':' delimiter near '1}]'"),
        ("[{}]\n{}", "letters.json:2: invalid JSON: there is more text after the end"),
        ("[{}, 3]", "letters.json, letter 2: is not a JSON object"),
        ("[" * 100_000, "values are nested too deeply"),
        ("[{}, " + "9" * 5000 + "]", "a number has too many digits"),
        ("hello", "letters.json:1: invalid JSON: Expecting value near 'hello'"),
        ("\x00\x00", "invalid JSON: Expecting value near '\\x00\\x00'"),
        (b"[\xff]", "invalid JSON: Expecting value near"),
    ],
)
def test_a_broken_document_is_refused_with_its_place(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    assert message in refusal(tmp_path, content)


@pytest.mark.parametrize("content", ['{"a": [1]}', '{"data": [1]}', "[]", "3", "{}"])
def test_a_document_without_the_list_is_refused_unless_it_is_optional(
    tmp_path: Path, content: str
) -> None:
    said = refusal(tmp_path, content, "data.Comment.item")
    assert said == 'letters.json: the file is not a list of letters: it has no list "data.Comment"'
    path = tmp_path / "letters.json"
    found = json_reader.items(path, "data.Comment.item", what="", is_required=False)
    assert list(found) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{a: 1}", "letters.json:1: invalid JSON: expected a key in quotation marks near"),
        ('{"a" 1}', 'letters.json:1: invalid JSON: expected ":" near'),
        ('{"a": 1', 'expected "," or "}" at the end of the file'),
    ],
)
def test_a_broken_object_around_the_list_is_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    assert message in refusal(tmp_path, content, "list.item")


def test_a_value_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_reader, "MAX_VALUE", 100_000)
    long = "x" * 300_000
    assert "is longer than 100,000 characters" in refusal(tmp_path, f'[{{"a": "{long}"}}]')


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    reader = json_reader.items(tmp_path / "none.json", "item", what="a list")
    assert refused(reader) == "none.json: No such file or directory"


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, json.dumps([{"text": "x" * 1000}] * 10_000))
    tracemalloc.start()
    try:
        assert sum(1 for _ in json_reader.items(path, "item", what="a list")) == 10_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 << 20
