"""The XML reader is strict, streams its input, enforces limits, and reports faults by line."""

import codecs
import contextlib
import dataclasses
import gzip
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from comments import errors
from comments.transfer import import_source
from comments.transfer.parsing import (
    html_references,
    record_fields,
    stray_bytes,
    xml_reader,
    xml_repairs,
)

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
    items = xml_reader.read(file_of(tmp_path, content), SHAPE)
    return [each for each in items if isinstance(each, xml_reader.Element)]


def corrected(tmp_path: Path, content: str | bytes) -> list[tuple[int, str]]:
    items = xml_reader.read(file_of(tmp_path, content), SHAPE)
    return [(each.line, each.what) for each in items if isinstance(each, import_source.Corrected)]


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


def test_elements_with_an_undeclared_prefix_are_ignored(tmp_path: Path) -> None:
    content = "<list>\n<atom:link/>\n<letter a:id='2' id='1'><b:body>no</b:body></letter></list>"
    (letter,) = read(tmp_path, content)
    assert dict(letter.fields) == {"@id": "1"}


def test_a_usual_prefix_needs_no_declaration(tmp_path: Path) -> None:
    usual = dataclasses.replace(SHAPE, prefixes={"x": "urn:x"})
    content = "<list>\n<x:letter x:id='1'/><o xmlns:x='urn:y'><x:letter/></o><x:letter/></list>"
    found = list(xml_reader.read(file_of(tmp_path, content), usual))
    letters = [each for each in found if isinstance(each, xml_reader.Element)]
    assert [(each.name, each.text("@id")) for each in letters] == [
        ("list/letter", "1"),
        ("list/letter", ""),
    ]


def test_a_gzip_file_is_unpacked(tmp_path: Path) -> None:
    content = gzip.compress(b"<list><letter id='1'/></list>")
    assert [each.text("@id") for each in read(tmp_path, content)] == ["1"]
    assert "the compressed file is damaged" in refused(tmp_path, content[:-9]).message


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


@pytest.mark.parametrize("start", [b'<?xml version="1.0"?>', b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("name", ["ISO-8859-1", "utf-16"])
def test_a_quoted_declaration_declares_nothing(tmp_path: Path, start: bytes, name: str) -> None:
    text = f'<?xml version="1.0" encoding="{name}"?> caf\u00e9'
    content = start + letter(f"<![CDATA[{text}]]>").encode()
    assert read(tmp_path, content)[0].text("body") == text


def test_a_byte_order_mark_wins_over_the_declaration(tmp_path: Path) -> None:
    content = codecs.BOM_UTF8 + declaring("ISO-8859-1").encode()
    assert read(tmp_path, content)[0].text("body") == "caf\u00e9"


def declaring(name: str) -> str:
    return f'<?xml version="1.0" encoding="{name}"?>\n{NOTE}'


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("UTF-8", "utf-8"),
        ("utf-16", "utf-16-le"),  # Without a byte order mark
        ("utf-16le", "utf-16-le"),
        ("UTF-16BE", "utf-16-be"),
        ("ISO-8859-1", "latin-1"),
        ("iso-8859-15", "iso-8859-15"),
        ("windows-1252", "cp1252"),
        ("gb18030", "gb18030"),
        ("euc-jp", "euc-jp"),
    ],
)
def test_a_declared_encoding_is_read(tmp_path: Path, name: str, codec: str) -> None:
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
        ("hz", "hz", "is not supported"),
        ("cp037", "utf-8", "is not supported"),
        ("unicode_escape", "utf-8", "is not supported"),
        ("rot13", "utf-8", "is not supported"),
        ("idna", "utf-8", "is not supported"),
        ("undefined", "utf-8", "is not supported"),
        ("x-nonsense", "utf-8", "is not supported"),
        ("a..b", "utf-8", "is not supported"),
        ("a" * 70_000, "utf-8", "is not supported"),
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
        (
            declaring("utf-8").replace("caf", "\u00e9\u00e9").encode("latin-1"),
            3,
            "the text is not UTF-8",
        ),
        (declaring("us-ascii").encode(), 3, "the text is not ascii; convert the file"),
        (declaring("utf-16").encode("utf-8"), 1, 'the encoding "utf-16" is not supported'),
        (declaring("utf-8").encode("utf-32"), 1, "convert the file to UTF-8"),
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
        (b"<list>\n<letter><body>\xed\xa0\x80</body></letter></list>", 2),
        ("<list/>\n<list/>", 2),
        ("<list>\n<letter>&#8&&#8;</list>", 2),
        ("<list>\n<letter><body>a < b</body></letter></list>", 2),
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


def letter(body: str) -> str:
    return f"<list>\n<letter><body>{body}</body></letter></list>"


@pytest.mark.parametrize(
    ("before", "line", "said"),
    [
        ("`", 2, xml_reader.BEFORE),
        ("<br />\n<b>Warning</b>: x in <b>/y.php</b>\n", 4, xml_reader.BEFORE),
        ("\n\n", 4, ""),
        ("\ufeff\n", 3, ""),
        ("\ufeff\ufeff", 2, ""),
        ("\ufeff", 2, ""),
    ],
)
def test_what_is_before_the_declaration_is_ignored(
    tmp_path: Path, before: str, line: int, said: str
) -> None:
    content = before + "<?xml version='1.0'?>" + letter("x")
    assert [(each.line, each.text("body")) for each in read(tmp_path, content)] == [(line, "x")]
    assert corrected(tmp_path, content) == ([(1, said)] if said else [])


def test_much_may_follow_the_document(tmp_path: Path) -> None:
    assert len(read(tmp_path, letter("x") + "`" * (1 << 21))) == 1


def test_sections_end_before_later_elements_of_their_name(tmp_path: Path) -> None:
    letters = "".join(
        f"<letter><body>{body}</body></letter>" for body in ("<![CDATA[one]]>", "two ]]> two")
    )
    found = read(tmp_path, f"<list>{letters}</list>")
    assert [each.text("body") for each in found] == ["one", "two ]]> two"]


def test_a_long_section_is_read(tmp_path: Path) -> None:
    note = f"<letter><body>x</body><other><![CDATA[{'a' * 5_000_000}]]></other></letter>"
    assert len(read(tmp_path, f"<list>{note}</list>")) == 1


def test_what_is_before_the_root_is_ignored(tmp_path: Path) -> None:
    assert corrected(tmp_path, "\n" + letter("x")) == []
    assert corrected(tmp_path, "x\n" + letter("x")) == [(1, xml_reader.BEFORE)]
    declaration = letter("<![CDATA[<?xml version='1.0'?>]]>")
    assert read(tmp_path, declaration)[0].text("body") == "<?xml version='1.0'?>"
    assert "DOCTYPE" in refused(tmp_path, "\n<!DOCTYPE list>" + letter("x")).message


def test_what_follows_the_document_is_ignored_if_it_is_no_document(tmp_path: Path) -> None:
    for rest in ("`\n", "\n<br />Warning", "\n" + "x" * 200_000):
        assert corrected(tmp_path, letter("x") + rest)[0][1] == xml_reader.AFTER
        assert len(read(tmp_path, letter("x") + rest)) == 1
    for rest in ("", "\n<?xml version='1.0'?>", "`" * 65_500):
        error = refused(tmp_path, letter("x") + rest + letter("y"))
        assert "a second document begins after the end of the first" in error.message
    for size in range(65_490, 65_500):  # The second document begins at the end of a chunk.
        content = letter("x") + "`" * size + letter("y") + "`" * 1_000
        assert "a second" in refused(tmp_path, content).message
    wide = f"<?xml version='1.0' encoding='utf-16'?>{letter('x')}{letter('y')}".encode("utf-16")
    assert "a second document" in refused(tmp_path, wide).message


@pytest.mark.parametrize(
    ("body", "text", "said"),
    [
        ("<![CDATA[if (a[b[0]]>1) </p> c]]>", "if (a[b[0]]>1) </p> c", xml_repairs.BRACKETS),
        ("<![CDATA[a ]]> b ]]> c]]>", "a ]]> b ]]> c", xml_repairs.BRACKETS),
        ("<![CDATA[<![CDATA[x]]> y]]>", "<![CDATA[x]]> y", xml_repairs.BRACKETS),
        ("a ]]> b", "a ]]> b", xml_repairs.BRACKETS),
        ("<![CDATA[a]]> ]]]]><![CDATA[>b]]>", "a]]> ]]>b", xml_repairs.BRACKETS),
        ("a &nbsp;&hellip;", "a \xa0\u2026", xml_repairs.ENTITIES),
        ("AT&T &b; & &#38;&#x26;&amp;", "AT&T &b; & &&&", xml_repairs.AMPERSANDS),
        ("a\x00\x08b", "ab", xml_repairs.CONTROL),
        ("&#55357;&#56832;", "\U0001f600", html_references.PAIRS),
        ("<![CDATA[&#xD83D;&#xde00]]>", "\U0001f600", html_references.PAIRS),
        ("a &amp;#55357; b", "a \ufffd b", record_fields.HALVES),
        ("a&#8;&#x0;<![CDATA[&#31;]]>b", "ab", html_references.CONTROL),
    ],
)
def test_a_text_that_was_not_escaped_is_read_and_reported(
    tmp_path: Path, body: str, text: str, said: str
) -> None:
    assert read(tmp_path, letter(body))[0].text("body") == text
    assert set(corrected(tmp_path, letter(body))) == {(2, said)}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<![CDATA[a]]]]><![CDATA[>b]]>", "a]]>b"),
        ("<![CDATA[a]]> <![CDATA[b]]>", "a b"),
        ("<![CDATA[a]]>b<![CDATA[c]]>d", "abcd"),
        ("<![CDATA[&nbsp; & \x7f]]>", "&nbsp; & \x7f"),
        ("<![CDATA[a]]><x t=']]>'/>", "a"),
        ("<![CDATA[a]]><!-- ]]> --><?y ]]>?>", "a"),
        ("<![CDATA[a]]><!-- <b> ]]> -->", "a"),
        ("<![CDATA[a]]><?y <b> ]]>?>", "a"),
        ("<!-- <![CDATA[ & ]]> -->b", "b"),
        ("&amp;&#38;", "&&"),
        ("&#x1F600;<![CDATA[&#128512;]]>&#10;", "\U0001f600&#128512;"),
    ],
)
def test_a_text_that_was_escaped_is_not_changed(tmp_path: Path, body: str, text: str) -> None:
    assert read(tmp_path, letter(body))[0].text("body") == text
    # In attributes and processing instructions, escaping changes nothing.
    is_escaped = "t=']]>'" in body or "<?y" in body
    assert corrected(tmp_path, letter(body)) == [(2, xml_repairs.BRACKETS)] * is_escaped


def test_stray_bytes_are_read_and_reported(tmp_path: Path) -> None:
    content = letter("caf\u00e9 \u2013 d\u00e9").encode().replace(b"\xc3\xa9", b"\xe9")
    assert read(tmp_path, content)[0].text("body") == "caf\u00e9 \u2013 d\u00e9"
    assert corrected(tmp_path, content) == [(2, stray_bytes.CORRECTION)] * 2
    latin = b"<?xml version='1.0' encoding='iso-8859-1'?>" + letter("\u00e9").encode("latin-1")
    assert corrected(tmp_path, latin) == []


@pytest.mark.parametrize("body", ["a < b", "<to id=2/>"])
def test_markup_that_is_not_escaped_is_refused_with_advice(tmp_path: Path, body: str) -> None:
    error = refused(tmp_path, letter(body))
    assert error.line == 2
    assert "write < in a text as &lt;, and put quotes around the values" in error.message


@pytest.mark.parametrize("name", ["utf8", "UTF_8", "utf-8-sig", "cp65001"])
def test_another_name_of_utf_8_is_read(tmp_path: Path, name: str) -> None:
    for mark in ("", "\ufeff"):
        content = mark + declaring(name)
        assert read(tmp_path, content)[0].text("body") == "caf\u00e9"
        assert corrected(tmp_path, content) == []


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        ("letters", "syntax error; the file is not XML"),
        ("<list><b></list>", "mismatched tag; close each element before the one around it"),
        ("<list a='1' a='2'/>", "duplicate attribute; remove one of them"),
    ],
)
def test_other_faults_are_refused_with_advice(tmp_path: Path, content: str, advice: str) -> None:
    assert advice in refused(tmp_path, content).message


def test_a_file_that_ends_too_early_is_refused_with_advice(tmp_path: Path) -> None:
    for content in ("<list>\n<letter>", "<list>\n<lett", "<list>\n<letter><![CDATA[x"):
        error = refused(tmp_path, content)
        assert "the file ends too early. Download or export it again" in error.message
