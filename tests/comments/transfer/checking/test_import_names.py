"""A name that breaks the rules is repaired."""

from pathlib import Path

import pytest

from comments.transfer.checking import import_authors, import_report
from tests.support.threads.sample_exports import THREAD, notes, plan_of, post, saved, written

LONG, REPAIRED = import_report.LONG_NAMES, import_report.REPAIRED_NAMES
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f466"


@pytest.mark.parametrize(
    ("raw", "name", "kinds"),
    [
        ("admin \u00bd", "admin \u00bd", []),
        ("n" * 80, "n" * 80, []),
        ("n" * 79 + " nn", "n" * 79, [LONG]),
        ("n" * 79 + "e\u0323\u0302" + "n", "n" * 79 + "\u1ec7", [LONG]),
        ("n" * 78 + FAMILY, "n" * 78 + FAMILY[0], [LONG]),
        ("A\x07nn\x9f \ud83d!", "Ann !", [REPAIRED]),
        ("A\nnn \u202e\u2029B", "A nn B", []),
        ("A\x00" + "n" * 90, "A" + "n" * 79, [REPAIRED, LONG]),
        ("q" + "\u0301" * 20 + "r", "qr", [REPAIRED]),
        ("\u200d" * 90, import_authors.GUEST, [import_report.NAMELESS]),
        ("\x07", import_authors.GUEST, [import_report.NAMELESS]),
    ],
)
def test_a_name_is_repaired_and_shortened(raw: str, name: str, kinds: list[str]) -> None:
    assert import_authors.usable_name(raw) == (name, kinds)


def test_a_text_in_the_field_of_the_name_is_kept(tmp_path: Path) -> None:
    text = "This is all that I wanted to say: &lt;b&gt; " + "and more, " * 9
    posts = [post("1", name=text, message=""), post("2", name=text, message="x")]
    with plan_of(saved(tmp_path / "export.xml", THREAD, *posts)) as plan:
        assert [line for line, _ in notes(plan, import_report.LONG_NAMES)] == [3, 4]
        assert [line for line, _ in notes(plan, import_report.TEXT_IN_NAME)] == [3]
        assert notes(plan, import_report.EMPTY) == []
        found = written(plan)
    assert found["1"].html == f"<p>{text.strip()}</p>"
    assert found["2"].html == "x"
