"""Repairs change nothing in well-formed XML, do not depend on chunks, and keep the lines."""

import tracemalloc
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.jobs.importers import import_source
from comments.jobs.importers.parsing import xml_repairs


def repaired(
    content: bytes, cuts: list[int] | None = None
) -> tuple[bytes, list[import_source.Corrected]]:
    repairs = xml_repairs.XmlRepairs("letters.xml", "list")
    out, found = b"", []
    ends = [0, *sorted(cuts or []), len(content)]
    for start, end in pairwise(ends):
        out += repairs.feed(content[start:end])
    out += repairs.feed(b"", is_last=True)
    found.extend(repairs.corrections())
    return out, sorted(found, key=lambda each: (each.line, each.what))


PIECES = st.sampled_from(
    [
        "a", " ", "\n", "]", "]]", ">", "]]>", "<", "<![CDATA[", "<!--", "-->", "&", "&amp;",
        "&nbsp;", "&b", ";", "<b>", "</b>", "<t>", "</t>", "<x y=']]>'/>", "<?p ]]>?>", "\u00e9",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=14).map("".join)
SECTIONS = st.lists(
    st.sampled_from(["a", "]", "]]", "&nbsp;", "<", "</t>", "<![CDATA[", "\n"]), max_size=8
).map("".join)
ESCAPED = st.one_of(
    st.sampled_from(["a", " ", "]", "\n", "&amp;", "&lt;", "<x y=']]>'/>", "<b>c</b>", "\u00e9"]),
    SECTIONS.map(lambda text: f"<![CDATA[{text.replace(']]>', '')}]]>"),
    st.sampled_from(["<!-- & ]]> -->", "<!-- <![CDATA[ -->", "<?p ]]> &?>"]),
)
WELL_FORMED = st.lists(
    st.lists(ESCAPED, max_size=5).map(lambda parts: f"<t>{''.join(parts)}</t>"), max_size=4
).map("".join)


def meaning(document: bytes) -> bytes:
    """Return what a parser reads, without comments and processing instructions."""
    return ET.tostring(ET.fromstring(document))  # noqa: S314 - a document of this test


@given(WELL_FORMED)
def test_a_well_formed_document_keeps_its_meaning(body: str) -> None:
    document = f"<list>{body}</list>".encode()
    assert meaning(repaired(document)[0]) == meaning(document)


@given(TEXTS, st.lists(st.integers(6, 90), max_size=4), st.binary(max_size=4))
def test_repairs_do_not_depend_on_chunks(text: str, cuts: list[int], strays: bytes) -> None:
    content = f"<list><list><t>{text}".encode() + strays + b"</t></list>"
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("_HEAD", 1), ("_KEPT", 8), ("_LOOKAHEAD", 32)):
            patch.setattr(xml_repairs, name, size)
        assert outcome(content, cuts) == outcome(content, [])


@pytest.mark.parametrize(
    "text",
    [
        b"a]]>b]]]]>&nbsp;c]]",
        b"<![CDATA[a]]> <![CDATA[b]]>c]]>]]></t>]]>",
        b"a\xe9b\xe9\xe9c",
        b"a\xe9b\xc3\xa9\x08",
        b"<!-- ]]> & --><!--->",
    ],
)
def test_repairs_do_not_depend_on_any_single_cut(text: bytes) -> None:
    content = b"<list><list><t>" + text + b"</t>" + b"d" * 40 + b"</list>"
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("_HEAD", 1), ("_KEPT", 8), ("_LOOKAHEAD", 32)):
            patch.setattr(xml_repairs, name, size)
        whole = outcome(content, [])
        assert {cut for cut in range(6, len(content)) if outcome(content, [cut]) != whole} == set()


def outcome(content: bytes, cuts: list[int]) -> tuple[bytes, list[import_source.Corrected]] | str:
    try:
        return repaired(content, cuts)
    except errors.BadImport as error:
        return error.message


@given(TEXTS)
def test_repairs_keep_the_lines(text: str) -> None:
    content = f"\n\n<list><t>{text}</t></list>".encode()
    repairs = xml_repairs.XmlRepairs("letters.xml", "list")
    out = repairs.feed(content, is_last=True)
    assert out.count(b"\n") == content.count(b"\n") - 2
    assert repairs.first_line == 3
    assert repaired(out)[0] == out


def test_memory_is_bounded() -> None:
    repairs = xml_repairs.XmlRepairs("letters.xml", "list")
    repairs.feed(b"<list><t><![CDATA[a]]>")
    chunk = b"b" * (1 << 16)
    tracemalloc.start()
    try:
        for _ in range(512):
            repairs.feed(chunk)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
