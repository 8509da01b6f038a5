"""The console counts a thread's followers, and lists only those who agreed."""

import re

import pytest

from comments.domain import records
from comments.notifications import reader_follows, subscriptions
from comments.store.models import comment_rows
from comments.web.admin.pages import follower_page
from tests.support.html import html_validator
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

PATH = "/thread/followers?thread=page"
LISTED = re.compile(r"<li><a href=[^>]*><bdi>([^<]*)</bdi></a>, ")


def test_all_followers_are_counted_and_those_who_agreed_listed_in_pages(
    owner: Desk, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert owner.client.get(f"/admin/sites/demo{PATH}").status_code == 404
    sample_threads.post(site, "text", thread="page")
    thread, now = records.ThreadName("demo", "page"), sample_threads.START
    for name in ("ann", "bob", "cleo"):
        reader_follows.follow(thread, f"g:{name}", now=now)
    reader_follows.show_name(thread, "g:ann", "Ann <i>")
    reader_follows.show_name(thread, "g:cleo", "Cleo")
    target = subscriptions.SubscriptionTarget("demo", comment_rows.thread_key_name(thread))
    subscriptions.subscribe("z" * 26, "sealed", target, now=now)
    page = owner.page(PATH)
    assert "4 people follow this page: 1 by mail, 3 without." in page
    assert LISTED.findall(page) == ["Ann &lt;i&gt;", "Cleo"]
    assert html_validator.complaints([page]) == [[]]
    monkeypatch.setattr(follower_page, "_PAGE", 1)
    first = owner.page(PATH)
    found = re.search(r'href="\?([^"]+)" rel="next"', first)
    assert found
    second = owner.page(f"/thread/followers?{found[1].replace('&amp;', '&')}")
    assert LISTED.findall(first) + LISTED.findall(second) == ["Ann &lt;i&gt;", "Cleo"]
