"""Owners count audiences in the console."""

import pytest

from comments.domain import records
from comments.events import dispatcher
from comments.upkeep import wiring
from comments.web.admin.pages import audience_page
from tests.support.histories import counter_oracle
from tests.support.html import html_validator
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

PATH = "/admin/sites/demo/audiences"


@pytest.fixture(autouse=True)
def comments(owner: Desk, site: records.Site) -> None:
    for author, thread in (("ann", "a"), ("ann", "b"), ("bob", "b"), ("cleo", "b")):
        sample_threads.post(
            site, "text", thread=thread, author=records.Author(author, id=f"g:{author}")
        )
    events = counter_oracle.events()
    dispatcher.deliver(events, now=sample_threads.START, handlers=wiring.HANDLERS)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"every": "site"}, "3 people"),
        ({"every": "thread:a, thread:b"}, "1 person"),
        ({"some": "thread:a, thread:b", "but": "thread:a"}, "2 people"),
    ],
)
def test_each_person_counts_once(owner: Desk, query: dict[str, str], said: str) -> None:
    page = owner.client.get(PATH, query_string=query)
    assert f"<strong>{said}</strong>" in page.text
    assert html_validator.complaints([page.text]) == [[]]


def test_a_wrong_source_and_a_scan_that_is_too_large_are_refused(
    owner: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for query, said in (
        ({"every": "sites"}, "&#34;sites&#34; is not a source."),
        ({"but": "site"}, "“In each of these” is required."),
        ({"every": "site@yesterday"}, "is not a source"),
    ):
        refused = owner.client.get(PATH, query_string=query)
        assert refused.status_code == 400
        assert said in refused.text
    monkeypatch.setattr(audience_page, "_MOST", 1)
    assert owner.client.get(PATH, query_string={"every": "site"}).status_code == 400
