"""The XML reader is strict, streams its input, enforces limits, and reports faults by line."""

import contextlib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from comments import errors
from comments.jobs.importers.parsing import xml_reader

SHAPE = xml_reader.Shape(
    title="a list of letters",
    root="list",
    name=lambda qualified: qualified.removeprefix("urn:x "),
    records={
        "list/letter": frozenset({"@id", "body", "from/name", "to@id"}),
        "list/letter/note": frozenset({"body"}),
    },
)


def file_of(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "letters.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(tmp_path: Path, content: str | bytes) -> list[xml_reader.Element]:
    return list(xml_reader.read(file_of(tmp_path, content), SHAPE))


def refused(tmp_path: Path, content: str | bytes) -> errors.BadImport:
    with pytest.raises(errors.BadImport) as caught:
        read(tmp_path, content)
    assert caught.value.file == str(tmp_path / "letters.xml")
    return caught.value


def test_records_come_with_their_fields_and_lines(tmp_path: Path) -> None:
    content = """<?xml version="1.0"?>
<list>
  <letter id="1"><from><name> Ada </name></from><to id="2"/>
    <body>a <![CDATA[<b>]]> &amp; c</body><other>x</other></letter>
  <letter/>
</list>"""
    first, second = read(tmp_path, content)
    assert (first.name, first.line, first.text("from/name")) == ("list/letter", 3, "Ada")
    assert (first.text("@id"), first.text("to@id"), first.text("body")) == ("1", "2", "a <b> & c")
    assert (first.text("other"), second.line, dict(second.fields)) == ("", 5, {})


def test_an_undeclared_prefix_is_refused_with_advice(tmp_path: Path) -> None:
    error = refused(tmp_path, "<list>\n<atom:link/></list>")
    assert error.line == 2
    assert "unbound prefix; add xmlns:PREFIX=" in str(error)


def test_a_nested_record_names_the_one_around_it(tmp_path: Path) -> None:
    content = "<list><letter><note><body>n</body></note><body>l</body></letter><letter/></list>"
    note, letter, last = read(tmp_path, content)
    assert (note.inside, note.text("body")) == (letter.serial, "n")
    assert (letter.inside, letter.text("body")) == (0, "l")
    assert len({note.serial, letter.serial, last.serial}) == 3


def test_elements_are_distinguished_by_namespace_not_by_prefix(tmp_path: Path) -> None:
    content = """<list xmlns:a="urn:x" xmlns:b="urn:y">
    <a:letter><a:body>yes</a:body></a:letter><b:letter/>
    <letter xmlns="urn:y"/><letter xmlns="urn:x"><b:body>no</b:body></letter></list>"""
    assert [element.text("body") for element in read(tmp_path, content)] == ["yes", ""]


def test_a_file_longer_than_a_chunk_is_read_completely(tmp_path: Path) -> None:
    body = "\u00e9" * 70_000
    content = "<list>" + f"<letter><body>{body}</body></letter>" * 3 + "</list>"
    assert [element.text("body") for element in read(tmp_path, content)] == [body] * 3


def test_text_in_another_declared_encoding_is_read(tmp_path: Path) -> None:
    content = (
        "<?xml version='1.0' encoding='utf-16'?><list><letter><body>\u00e9</body></letter></list>"
    )
    assert read(tmp_path, content.encode("utf-16"))[0].text("body") == "\u00e9"


NOTE = "<list>\n<letter><body>caf\u00e9</body></letter></list>"


def declaring(name: str) -> str:
    return f'<?xml version="1.0" encoding="{name}"?>\n{NOTE}'


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("UTF-8", "utf-8"),
        ("utf-16", "utf-16-le"),  # without a byte order mark
        ("utf-16le", "utf-16-le"),
        ("UTF-16BE", "utf-16-be"),
        ("ISO-8859-1", "latin-1"),
        ("iso-8859-15", "iso-8859-15"),
        ("windows-1252", "cp1252"),
    ],
)
def test_an_encoding_of_xml_or_of_one_byte_is_read(tmp_path: Path, name: str, codec: str) -> None:
    assert read(tmp_path, declaring(name).encode(codec))[0].text("body") == "caf\u00e9"


@pytest.mark.parametrize("name", ["utf8", "us-ascii", "iso-2022-jp"])
def test_ascii_under_another_name_is_read(tmp_path: Path, name: str) -> None:
    plain = declaring(name).replace("\u00e9", "e")
    assert read(tmp_path, plain)[0].text("body") == "cafe"


@pytest.mark.parametrize(
    ("name", "codec", "reason"),
    [
        ("utf-7", "utf-7", "is not supported"),
        ("Unicode-1-1-UTF-7", "ascii", "is not supported"),
        ("utf-32", "utf-8", "is not supported"),
        ("shift_jis", "shift_jis", "is not supported"),
        ("gbk", "gbk", "is not supported"),
        ("hz", "hz", "is not supported"),
        ("cp037", "utf-8", "is not supported"),
        ("unicode_escape", "utf-8", "is not supported"),
        ("rot13", "utf-8", "is not supported"),
        ("idna", "utf-8", "is not supported"),
        ("undefined", "utf-8", "is not supported"),
        ("x-nonsense", "utf-8", "is unknown"),
        ("a..b", "utf-8", "is unknown"),
        ("a" * 70_000, "utf-8", "is unknown"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_an_unsupported_encoding_is_refused_with_advice(
    tmp_path: Path, name: str, codec: str, reason: str
) -> None:
    error = refused(tmp_path, declaring(name).encode(codec, "replace"))
    assert error.line == 1
    assert f'the encoding "{name[:40]}" {reason}: convert the file to UTF-8' in str(error)


@pytest.mark.parametrize(
    ("content", "line", "advice"),
    [
        (NOTE.encode("latin-1"), 2, "if the text is not UTF-8, convert"),
        (declaring("utf-8").encode("latin-1"), 3, "if the text is not utf-8, convert"),
        (declaring("us-ascii").encode(), 3, "if the text is not us-ascii, convert"),
        (declaring("utf-8").encode("utf-16"), 1, "if the text is not utf-8, convert"),
        (declaring("utf-16").encode("utf-8"), 1, "if the text is not utf-16, convert"),
        (declaring("utf-8").encode("utf-32"), 1, "if the text is not UTF-8, convert"),
        (NOTE.encode()[: NOTE.encode().index(b"\xa9")], 2, "if the text is not UTF-8, convert"),
        (declaring("utf8").encode(), 3, 'set encoding="UTF-8" in the first line'),
    ],
)
def test_bytes_of_another_encoding_are_refused_with_advice(
    tmp_path: Path, content: bytes, line: int, advice: str
) -> None:
    error = refused(tmp_path, content)
    assert error.line == line
    assert advice in str(error)


LAUGHS = """<!DOCTYPE list [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<list><letter><body>&b;</body></letter></list>"""


@pytest.mark.parametrize(
    "content",
    [
        LAUGHS,
        "<!DOCTYPE list [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><list>&x;</list>",
        "<!DOCTYPE list SYSTEM 'http://x.example/list.dtd'><list/>",
        "<!DOCTYPE list><list/>",
    ],
)
def test_a_doctype_is_refused(tmp_path: Path, content: str) -> None:
    error = refused(tmp_path, content)
    assert error.line == 1
    assert "DOCTYPE" in error.message


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", 1),
        ("<list>\n<letter>\n", 3),
        ("<list>\n<letter></list>", 2),
        ("<list>\n\n<a:letter/></list>", 3),
        ("<list>\n&nbsp;</list>", 2),
        ("<list>\n<letter><body>\x00</body></letter></list>", 2),
        (b"<list>\n<letter><body>\xff</body></letter></list>", 2),
        (b"<list>\n<letter><body>\xed\xa0\x80</body></letter></list>", 2),
        (b"\x1f\x8b\x08\x00 compressed", 1),
        ("`<?xml version='1.0'?><list/>", 1),
        ("<list/>\n<list/>", 2),
        ("\n<html/>", 2),
        ("<list>\n<letter id='1' id='2'/></list>", 2),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(
    tmp_path: Path, content: str | bytes, line: int
) -> None:
    assert refused(tmp_path, content).line == line


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.BadImport) as caught:
        list(xml_reader.read(tmp_path / "nothing.xml", SHAPE))
    assert caught.value.line is None


def test_elements_nested_a_million_deep_are_refused(tmp_path: Path) -> None:
    content = "<list>\n" + "<x>" * 1_000_000
    assert refused(tmp_path, content).line == 2


def test_elements_nested_to_the_limit_are_read(tmp_path: Path) -> None:
    deep = xml_reader.MAX_DEPTH - 1
    assert read(tmp_path, "<list>" + "<x>" * deep + "</x>" * deep + "</list>") == []


def test_a_field_longer_than_the_budget_is_refused(tmp_path: Path) -> None:
    content = "<list>\n<letter><body>" + "x" * (xml_reader.MAX_TEXT + 1) + "</body></letter></list>"
    assert refused(tmp_path, content).line == 2


@contextlib.contextmanager
def at_most(limit: int) -> Iterator[None]:
    """Fail if more than `limit` bytes, including the parser's, are allocated at the same time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("opening", ["<letter id='", "<!--", "<?x ", "<"])
def test_an_endless_token_is_refused_before_it_fills_memory(tmp_path: Path, opening: str) -> None:
    path = file_of(tmp_path, "<list>\n" + opening + "x" * (32 << 20))
    with at_most(8 * xml_reader.MAX_TOKEN), pytest.raises(errors.BadImport) as caught:
        list(xml_reader.read(path, SHAPE))
    assert caught.value.line == 2


def test_the_text_of_unused_elements_is_not_kept(tmp_path: Path) -> None:
    other = "<other>" + "x" * (32 << 20) + "</other>"
    path = file_of(tmp_path, f"<list><letter>{other}<body>b</body></letter></list>")
    with at_most(1 << 20):
        assert [element.text("body") for element in xml_reader.read(path, SHAPE)] == ["b"]
