"""Repairs change nothing in well-formed XML, do not depend on chunks, and keep the lines."""

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.transfer import import_source
from comments.transfer.parsing import xml_repairs


def repaired(
    content: str, cuts: list[int] | None = None, line: int = 1
) -> tuple[str, list[import_source.Corrected]]:
    found: list[import_source.Corrected] = []
    repairs = xml_repairs.XmlRepairs("letters.xml", line, found.append)
    ends = [0, *sorted(cuts or []), len(content)]
    out = [repairs.feed(content[start:end]) for start, end in pairwise(ends)]
    out.append(repairs.feed("", is_last=True))
    return "".join(out), sorted(found, key=lambda each: (each.line, each.what))


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


def meaning(document: str) -> bytes:
    """Return what a parser reads, without comments and processing instructions."""
    return ET.tostring(ET.fromstring(document))  # noqa: S314 - a document of this test


@given(WELL_FORMED)
def test_a_well_formed_document_keeps_its_meaning(body: str) -> None:
    document = f"<list>{body}</list>"
    assert meaning(repaired(document)[0]) == meaning(document)


@given(TEXTS, st.lists(st.integers(6, 90), max_size=4))
def test_repairs_do_not_depend_on_chunks(text: str, cuts: list[int]) -> None:
    content = f"<list><list><t>{text}</t></list>"
    assert repaired(content, cuts) == repaired(content)


@pytest.mark.parametrize(
    "text",
    [
        "a]]>b]]]]>&nbsp;c]]",
        "<![CDATA[a]]> <![CDATA[b]]>c]]>]]></t>]]>",
        "a\udce9b\udce9c",
        "a\x08&#55357;&#56832;b",
        "<!-- ]]> & --><!--->",
    ],
)
def test_repairs_do_not_depend_on_any_single_cut(text: str) -> None:
    content = f"<list><list><t>{text}</t>{'d' * 40}</list>"
    whole = repaired(content)
    assert {cut for cut in range(6, len(content)) if repaired(content, [cut]) != whole} == set()


@given(TEXTS)
def test_repairs_keep_the_lines(text: str) -> None:
    content = f"<list><t>{text}\n&</t></list>"
    out, found = repaired(content, line=3)
    assert out.count("\n") == content.count("\n")
    assert found[-1].line == 3 + content.count("\n") or "<![CDATA[" in text or "<!--" in text
    assert repaired(out)[0] == out


def test_an_endless_section_is_refused() -> None:
    repairs = xml_repairs.XmlRepairs("letters.xml", 1, lambda _: None)
    repairs.feed("<list>\n<t><![CDATA[a")
    repairs.feed("b" * (xml_repairs.MOST - 1000))
    with pytest.raises(errors.BadImport) as caught:
        repairs.feed("b" * 1000)
    assert caught.value.line == 2
