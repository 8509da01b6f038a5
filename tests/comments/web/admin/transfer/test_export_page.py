"""Owners download everything of their site, and nobody else does."""

import gzip
import json
from xml.etree import ElementTree as ET

import pytest

from comments.domain import records
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.web.admin.transfer import export_page
from tests.support.histories import counter_drift
from tests.support.people.console_browser import DESK, Desk
from tests.support.threads import sample_threads
from tests.support.threads.sample_exports import NOW

ADA = records.Actor("cli", "Ada")


@pytest.fixture
def posted(site: records.Site) -> list[records.Comment]:
    author = records.Author("Eve", email="eve@mail.example", id="g:eve")
    rows = [sample_threads.post(site, f"text {n}", author=author) for n in range(3)]
    decisions.decide("demo", rows[1].id, Verb.SPAM, ADA, now=NOW)
    return rows


def test_the_file_has_all_comments_and_no_addresses(
    owner: Desk, posted: list[records.Comment]
) -> None:
    response = owner.client.get(f"{DESK}/export")
    assert response.headers["Content-Type"] == "application/gzip"
    assert response.headers["Cache-Control"] == "no-store"
    named = response.headers["Content-Disposition"]
    assert named.startswith("attachment; filename=demo-")
    assert named.endswith(".jsonl.gz")
    text = gzip.decompress(response.data).decode()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["id"] for line in lines if line["kind"] == "comment"] == [
        each.id for each in posted
    ]
    assert (lines[0]["kind"], lines[-1]["kind"], lines[-1]["comments"]) == ("header", "end", 3)
    assert "mail.example" not in text
    assert not any(line["kind"] == "audit" for line in lines)


def test_the_audit_log_is_included_on_request(owner: Desk, posted: list[records.Comment]) -> None:
    data = owner.client.get(f"{DESK}/export?audit_log=on").data
    assert b'"kind":"audit"' in gzip.decompress(data)


def test_wxr_is_xml(owner: Desk, posted: list[records.Comment]) -> None:
    for query in ("format=wxr", "format=wxr&audit_log=on"):
        response = owner.client.get(f"{DESK}/export?{query}")
        assert response.headers["Content-Disposition"].endswith(".xml.gz")
        tree = ET.fromstring(gzip.decompress(response.data))  # noqa: S314 - our own file
        assert len(tree.findall(".//{http://wordpress.org/export/1.2/}comment")) == 3


def test_a_large_site_is_exported_on_the_command_line(
    owner: Desk, posted: list[records.Comment], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ">Download<" in owner.page("/imports")
    monkeypatch.setattr(export_page, "MOST_COMMENTS", 2)
    counter_drift.deliver()
    assert owner.client.get(f"{DESK}/export").status_code == 409
    page = owner.page("/imports")
    assert ">Download<" not in page
    assert "more than 2 comments" in page


def test_moderators_and_strangers_get_no_file(desk: Desk, posted: list[records.Comment]) -> None:
    assert desk.client.get(f"{DESK}/export").status_code == 403
    assert desk.client.get(f"{DESK}/export?format=xml").status_code in {400, 403}
