"""Test what a site's moderation pages show and what their forms do."""

import html
import re
from datetime import timedelta
from urllib.parse import parse_qsl

import flask
import pytest

from comments.domain import records
from comments.domain.moderation import classifier_verdicts
from comments.domain.records import Status, Verb
from comments.events import audit_log, dispatcher
from comments.moderation import decisions, thread_list
from comments.moderation.policy import policy_changes, rules
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import wiring
from tests.support import stored_state
from tests.support.html import html_reader, html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, moderator
from tests.support.people.console_browser import DESK, OWN, Desk
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
MANY = [f"c.{'a' * 24}{one}{two}" for one in "abcdefghijk" for two in "abcdefghij"]


@pytest.fixture
def store(store: connection.Store, site: records.Site) -> connection.Store:
    return store


@pytest.fixture
def desk(app: flask.Flask, store: connection.Store) -> Desk:
    account_holders.account("bob", moderator())
    return Desk(app, "bob")


@pytest.fixture
def held(store: connection.Store, site: records.Site) -> list[records.Comment]:
    """Three held comments, oldest first."""
    return [_held(site, f"text {number}", number) for number in range(3)]


def _held(site: records.Site, body: str, minute: int = 0, **more: object) -> records.Comment:
    now = sample_threads.START + timedelta(minutes=minute)
    row = sample_threads.post(site, body, now=now, **more)  # type: ignore[arg-type]
    return decisions.decide(site.id, row.id, Verb.HOLD, ADA, now=now)


def _status(row: records.Comment) -> Status:
    return decisions.case(row.site, row.id).comment.status


def test_the_queue_shows_held_comments_newest_first_with_all_details(
    desk: Desk, site: records.Site
) -> None:
    author = records.Author("Eve <b>", "https://eve.example/?a&b", "eve@example.org", "g:eve")
    root = sample_threads.post(site, "root", title="Of <i>cats", url="http://localhost:8080/cats")
    _held(site, "old", 1)
    row = _held(site, "new *text*", 2, author=author, parent=root.id)
    sample_threads.post(site, "not shown here", thread="t2")
    page = desk.page("/queue")
    assert page.index("new <em>text</em>") < page.index("<p>old</p>")
    assert "not shown here" not in page
    assert "Eve &lt;b&gt;" in page
    assert "Of &lt;i&gt;cats" in page
    assert 'href="https://eve.example/?a&amp;b" rel="nofollow ugc noopener noreferrer"' in page
    assert f"{DESK[1:]}/comments/{row.id}" in page
    assert "http://localhost:8080/cats" in page
    assert "eve@example.org" not in page
    assert "moderator" in page


def test_a_thread_without_an_address_links_to_the_page_that_its_id_names(
    desk: Desk, site: records.Site
) -> None:
    _held(site, "text", thread="localhost:8080/cats")
    for path in ("/queue", "/thread?thread=localhost:8080/cats"):
        assert 'href="http://localhost:8080/cats"' in desk.page(path)


@pytest.mark.parametrize(
    ("act", "status"),
    [
        ("approve", Status.APPROVED), ("reject", Status.REJECTED), ("spam", Status.SPAM),
        ("restore", Status.APPROVED),
    ],
)  # fmt: skip
def test_a_form_decides_and_the_page_reports_each_outcome_and_undoes_it(
    desk: Desk, held: list[records.Comment], act: str, status: Status
) -> None:
    page = desk.send("/queue", act, *held[:2], reason="seen before").text
    assert ": 2 of 2 done." in page
    assert [_status(row) for row in held] == [status, status, Status.PENDING]
    for row in held[:2]:
        entry = audit_log.log("demo", subject=row.id)[0]
        assert (entry.verb, entry.actor.name, entry.reason) == (act, "Bob", "seen before")
    if act == "restore":
        assert 'class="ft-button">Undo<' not in page
        return
    fields = dict(re.findall(r'type="hidden" name="(c\.[a-z2-7]{26})" value="(\d+)"', page))
    assert set(fields) == {f"c.{row.id}" for row in held[:2]}
    undone = desk.send("/queue", "restore", **fields).text
    assert "Restore previous status: 2 of 2 done." in undone
    assert [_status(row) for row in held] == [Status.PENDING] * 3


def test_a_comments_own_button_ignores_the_selection(
    desk: Desk, held: list[records.Comment]
) -> None:
    desk.send("/queue", f"spam:{held[0].id}:{held[0].revision}", held[1])
    assert [_status(row) for row in held] == [Status.SPAM, Status.PENDING, Status.PENDING]


def test_an_earlier_decision_of_somebody_else_is_kept_and_reported(
    desk: Desk, held: list[records.Comment]
) -> None:
    decisions.decide("demo", held[0].id, Verb.REJECT, ADA, now=sample_threads.START)
    decisions.decide("demo", held[1].id, Verb.APPROVE, ADA, now=sample_threads.START)
    page = desk.send("/queue", "approve", *held).text
    assert "Approve: 2 of 3 done." in page
    assert "changed after you opened this page. Status: Rejected." in page
    assert "No change needed. Status: Approved." in page
    assert [_status(row) for row in held] == [Status.REJECTED, Status.APPROVED, Status.APPROVED]
    assert [len(audit_log.log("demo", subject=row.id)) for row in held] == [2, 2, 2]


def test_a_script_gets_the_same_as_json(desk: Desk, held: list[records.Comment]) -> None:
    response = desk.send("/queue", "approve", *held[:1], accept="application/json")
    assert response.content_type == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    (outcome,) = response.json["outcomes"]
    assert outcome["status"] == "approved"
    assert outcome["undo"] == "restore"
    assert outcome["revision"] == decisions.case("demo", held[0].id).comment.revision
    assert set(outcome) == {
        "id", "author", "said", "is_done", "status", "label", "revision", "undo", "is_pinned",
    }  # fmt: skip


@pytest.mark.usefixtures("held")
class TestElsewhere:
    """Tests with a moderator of one site and a comment on a different site."""

    @pytest.fixture
    def foreign(self) -> records.Comment:
        blog = site_settings.add(
            "blog",
            ["https://blog.example"],
            scheme=sample_threads.SETTINGS.scheme,
            now=sample_threads.START,
        )
        return _held(blog, "a foreign secret", title="A foreign title")

    def test_no_form_reaches_a_comment_of_another_site(
        self, desk: Desk, held: list[records.Comment], foreign: records.Comment
    ) -> None:
        before = decisions.case("blog", foreign.id)
        for verb in Verb:
            assert desk.send("/queue", verb, foreign).status_code == 404
            act = f"{verb}:{foreign.id}:{foreign.revision}"
            assert desk.send("/queue", act).status_code == 404
            path = f"/comments/{foreign.id}"
            assert desk.send(path, act).status_code == 404
        mixed = desk.send("/queue", "approve", held[0], foreign)
        assert "1 of 2 done" in mixed.text
        assert "There is no such comment on this site." in mixed.text
        assert "a foreign" not in mixed.text
        assert decisions.case("blog", foreign.id) == before
        assert len(audit_log.log("blog")) == 1

    def test_no_page_shows_content_of_another_site(
        self, desk: Desk, foreign: records.Comment
    ) -> None:
        author = "id=g:a+foreign+secret"
        for path in (
            f"{DESK}/comments/{foreign.id}", f"{DESK}/author?{author}", f"{DESK}/thread?thread=x",
            "/admin/sites/blog/queue", "/admin/sites/blog/log", "/admin/sites/blog/threads",
            "/admin/sites/blog/authors", f"/admin/sites/blog/author?{author}",
            "/admin/sites/blog/thread?thread=page", f"/admin/sites/blog/comments/{foreign.id}",
            "/admin/sites/nowhere/queue",
        ):  # fmt: skip
            response = desk.client.get(path)
            assert response.status_code == 404, path
            assert "foreign secret" not in response.text.replace("g:a foreign secret", "")
        for path in ("/queue?status=any", "/queue?status=any&q=secret", "/threads", "/log"):
            assert "foreign" not in desk.page(path).replace("q=secret", "")
        for path in ("/queue", f"/comments/{foreign.id}"):
            response = desk.send(path, "approve", foreign, desk="/admin/sites/blog")
            assert response.status_code == 404
        assert _status(foreign) is Status.PENDING

    def test_an_owner_of_the_service_moderates_every_site(
        self, app: flask.Flask, foreign: records.Comment
    ) -> None:
        account_holders.account("ann", OWNER)
        owner = Desk(app, "ann")
        owner.send("/queue", "approve", foreign, desk="/admin/sites/blog")
        assert _status(foreign) is Status.APPROVED


@pytest.mark.parametrize(
    ("query", "bodies"),
    [
        ("", ["text 2", "text 1", "text 0", "a shop"]), ("?why=rule", ["a shop"]),
        ("?why=rule:shops", ["a shop"]), ("?why=rule:other", []), ("?why=classifier", []),
        ("?why=moderator&q=text&since=&until=&address=", ["text 2", "text 1", "text 0"]),
        ("?address=https%3A%2F%2Fdemo.example%2Fshop%3Ffrom%3Dmail", ["a shop"]),
        ("?address=page&q=2", ["text 2"]), ("?address=nowhere", []),
        ("?since=2026-01-02&until=2026-01-02", ["text 2", "text 1", "text 0"]),
        ("?since=2026-01-03", ["a shop"]), ("?until=2026-01-01", []),
    ],
)  # fmt: skip
def test_filters_combine_and_stay_in_the_form(
    desk: Desk, site: records.Site, held: list[records.Comment], query: str, bodies: list[str]
) -> None:
    rule = rules.Rule("shops", rules.Action.HOLD, words=("shop",))
    policy_changes.put_rule("demo", rule, ADA, now=sample_threads.START)
    sample_threads.post(
        site, "a shop", thread="demo.example/shop", now=sample_threads.START + timedelta(days=1)
    )
    page = desk.page(f"/queue{query}")
    shown = re.findall(r'<div class="ft-text" dir="auto"><p>(.*)</p>', page)
    assert sorted(shown) == sorted(bodies)
    for name, value in parse_qsl(query[1:]):
        kept = html.escape(value)
        assert f'value="{kept}" selected' in page or re.search(
            f'name="{name}" [^>]*value="{re.escape(kept)}"', page
        )


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("why=mood", "Reason"), ("since=yesterday", "From"), ("until=2026-02-30", "To"),
        ("until=9999-12-31", "To"), ("address=a%00", "Page"), ("reason=spam", "Reason"),
        ("q=" + "a" * 101, "Search"),
    ],
)  # fmt: skip
def test_a_filter_that_is_not_valid_is_refused(desk: Desk, query: str, field: str) -> None:
    response = desk.client.get(f"{DESK}/queue?{query}")
    assert response.status_code == 400
    assert f'<p dir="auto">{field} ' in response.text


@pytest.mark.parametrize(
    "form",
    [
        {"act": ""}, {"act": "delete"}, {"act": "approve"}, {"act": "approve:x:1"},
        {"act": "approve:" + "a" * 26}, {"act": "approve:" + "a" * 26 + ":0"},
        {"act": "approve", "c." + "a" * 26: "x"}, {"act": "approve", "c.x": "1"},
        {"act": "approve", "status": "approved"}, {"act": "approve", "site": "blog"},
        {"act": "approve", **dict.fromkeys(MANY, "1")},
        {"act": "approve", "reason": "x" * 501}, {"act": "approve", "reason": "a\x00b"},
    ],
)  # fmt: skip
def test_a_malformed_form_is_refused(
    desk: Desk, held: list[records.Comment], form: dict[str, str]
) -> None:
    chosen = held[:1] if "reason" in form or "status" in form or "site" in form else []
    rest = {name: value for name, value in form.items() if name != "act"}
    response = desk.send("/queue", form["act"], *chosen, **rest)
    assert response.status_code == 400
    assert [_status(row) for row in held] == [Status.PENDING] * 3


def test_a_decision_needs_our_own_page_and_its_token(
    desk: Desk, held: list[records.Comment]
) -> None:
    fields = {"act": "approve", f"c.{held[0].id}": str(held[0].revision)}
    for headers, token in (
        ({"Sec-Fetch-Site": "cross-site"}, desk.token), ({}, desk.token), (OWN, ""),
        ({"Sec-Fetch-Site": "same-site"}, desk.token), (OWN, "a" * 26),
    ):  # fmt: skip
        for path in ("/queue", f"/comments/{held[0].id}", "/thread?thread=page"):
            response = desk.client.post(
                f"{DESK}{path}", data={**fields, "form": token}, headers=headers
            )
            assert response.status_code == 403
    # Opening a link changes nothing, so mail scanners and previews do no harm.
    for name in ("act", "c"):
        response = desk.client.get(f"{DESK}/queue?{name}=approve:{held[0].id}:2")
        assert response.status_code == 400
    desk.client.head(f"{DESK}/comments/{held[0].id}")
    assert _status(held[0]) is Status.PENDING


def test_a_comment_is_shown_with_its_parent_its_decisions_and_its_authors_other_comments(
    desk: Desk, site: records.Site
) -> None:
    eve = records.Author("Eve", id="g:eve")
    root = sample_threads.post(site, "the *question*")
    row = _held(site, "the answer", 2, parent=root.id, author=eve)
    sample_threads.post(site, "another of _hers_ & more", author=eve, thread="t2")
    page = desk.page(f"/comments/{row.id}")
    others = ("the question", "another of hers &amp; more")  # without their formatting
    for words in (*others, "the answer", "Approved → Pending", "Ada"):
        assert words in page
    done = desk.send(f"/comments/{row.id}", f"approve:{row.id}:{row.revision}").text
    assert "Approve: 1 of 1 done." in done
    other = desk.send(f"/comments/{row.id}", f"approve:{root.id}:{root.revision}")
    assert other.status_code == 400


def test_an_author_and_a_thread_show_all_comments_of_any_status(
    desk: Desk, site: records.Site
) -> None:
    eve = records.Author("Eve", id="g:eve & co")
    for verb in (Verb.SPAM, Verb.REJECT, Verb.HOLD, Verb.HIDE):
        row = sample_threads.post(site, f"to {verb}", author=eve, thread="a page?x=1&y")
        decisions.decide("demo", row.id, verb, ADA, now=sample_threads.START)
    sample_threads.post(site, "somebody else's", thread="a page?x=1&y")
    author = desk.page("/author?id=g%3Aeve+%26+co")
    assert [word in author for word in ("to spam", "to reject", "to hold", "to hide")] == [True] * 4
    assert "somebody else" not in author
    (link,) = set(re.findall(r'href="[./]*(admin/sites/demo/thread\?thread=[^"]*)"', author))
    thread = desk.client.get(f"/{link.replace('&amp;', '&')}").text
    assert "somebody else" in thread
    assert "to spam" in thread
    assert re.search(
        r"""a page\?x=1&amp;y</bdi></a></th>\s*<td data-label="Published">1</td>"""
        r"""<td data-label="Pending">1</td>""",
        desk.page("/threads"),
    )
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=sample_threads.START, handlers=wiring.HANDLERS)
    people = desk.page("/authors")
    assert "somebody else" in people
    assert 'placeholder="Search comments by name"' in people
    tab = 'Approved <span class="ft-number">'
    assert tab in desk.page("/queue?status=any")
    # The numbers are those of the site, so they would be wrong beside a search.
    assert tab not in desk.page("/queue?status=any&q=else")
    for path in ("/author", "/author?id=g:nobody", "/thread?thread=nowhere"):
        assert desk.client.get(f"{DESK}{path}").status_code == 404


def test_pages_with_equal_titles_show_their_ids(desk: Desk, site: records.Site) -> None:
    for thread, title in (("a", "Twice"), ("b", "Twice"), ("c", "Once")):
        url = f"http://localhost:8080/{thread}"
        sample_threads.post(site, "x", thread=thread, title=title, url=url)
    assert re.findall(r"ft-file\"><bdi>(\w)</bdi>", desk.page("/threads")) == ["a", "b"]


def test_only_owners_are_offered_to_move_a_comment(
    app: flask.Flask, desk: Desk, site: records.Site
) -> None:
    row = sample_threads.post(site, "text")
    account_holders.account("olga", OWNER)
    for each, count in ((desk, 0), (Desk(app, "olga"), 1)):
        for path in ("/queue?status=any", f"/comments/{row.id}"):
            assert each.page(path).count(f"/moves?comment={row.id}") == count


def test_pages_are_sorted_by_newest_comments_or_by_most(
    desk: Desk, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = sample_threads.filing(site, "sport/golf", "news")
    for thread, count in (("once", 1), ("often", 3), ("twice", 2)):
        filed = ["news" if thread == "often" else "sport/golf"]
        for number in range(count):
            at = sample_threads.START + timedelta(minutes=number)
            sample_threads.post(site, f"{thread} {number}", thread=thread, now=at, categories=filed)
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=sample_threads.START, handlers=wiring.HANDLERS)
    names = r"<bdi>(once|often|twice)</bdi>"
    assert re.findall(names, desk.page("/threads")) == ["often", "twice", "once"]
    sample_threads.post(site, "late", thread="once", now=sample_threads.START + timedelta(days=1))
    assert re.findall(names, desk.page("/threads"))[0] == "once"
    ranked = re.findall(names, desk.page("/threads?order=comments"))
    assert ranked == ["often", "twice", "once"]
    ranked = re.findall(names, desk.page("/threads?order=comments&category=sport"))
    assert ranked == ["twice", "once"]
    monkeypatch.setattr(thread_list, "MOST_FILED", 1)
    ranked = re.findall(names, desk.page("/threads?order=comments&category=sport"))
    assert ranked == ["once"], "only the most recently active threads of a category are ranked"
    assert re.findall(names, desk.page("/threads?order=comments&q=once")) == ["once"]
    for number in range(3):  # No event has been delivered, so statistics do not count these yet.
        sample_threads.post(site, f"uncounted {number}", thread="once")
    ranked = re.findall(names, desk.page("/threads?order=comments"))
    assert ranked == ["once", "often", "twice"], "the order agrees with the numbers in the table"
    assert desk.client.get(f"{DESK}/threads?order=size").status_code == 400


@pytest.mark.slow
def test_pages_continue_where_the_previous_page_ended(desk: Desk, site: records.Site) -> None:
    eve = records.Author("Eve", id="g:eve")
    for number in range(60):
        _held(site, f"text {number};", number, author=eve, thread="t")
    for path in ("/queue?status=any", "/log", "/author?id=g%3Aeve", "/thread?thread=t"):
        _assert_continued(desk, path)


def _assert_continued(desk: Desk, path: str) -> None:
    pages, link = [], f"{DESK}{path}"
    for _ in range(9):
        page = desk.client.get(link).text
        pages.append(page)
        found = re.search(r'href="(\?[^"]*cursor=[^"]*)"', page)
        if not found:
            break
        link = link.partition("?")[0] + found[1].replace("&amp;", "&")
    assert len(pages) == (2 if path == "/log" else 3)
    told = re.findall(r"comments/([a-z2-7]{26})", "".join(pages))
    assert len(set(told)) == 60
    assert desk.client.get(f"{DESK}{path.partition('?')[0]}?cursor=x").status_code in {400, 404}


@pytest.mark.slow
def test_the_log_omits_no_decision_made_at_the_same_moment(desk: Desk, site: records.Site) -> None:
    for number in range(60):
        row = sample_threads.post(site, f"text {number}", thread=f"t{number}")
        decisions.decide("demo", row.id, Verb.SPAM, ADA, now=sample_threads.START)
    page = desk.page("/log")
    (link,) = re.findall(r'href="(\?cursor=[^"]*)"', page)
    rest = desk.page(f"/log{link}")
    told = re.findall(r"comments/([a-z2-7]{26})", page + rest)
    assert len(told) == len(set(told)) == 60
    assert "cursor=" not in rest


@pytest.mark.parametrize("path", ["/queue", "/log", "/comments/" + "a" * 26, "/queue?status=x"])
def test_no_response_is_cached_or_framed_and_pages_run_only_our_own_files(
    app: flask.Flask, desk: Desk, path: str
) -> None:
    for response in (
        desk.client.get(f"{DESK}{path}"),
        desk.client.get(f"/admin/sites/blog{path}"),
        app.test_client().get(f"{DESK}{path}"),
        desk.send("/queue", "approve:" + "a" * 26 + ":1", accept="application/json"),
    ):
        rules = response.headers["Content-Security-Policy"].split("; ")
        assert {
            "default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'",
            "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
        } <= set(rules)  # fmt: skip
        assert "unsafe" not in str(rules)
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"
        assert response.headers["X-Robots-Tag"] == "noindex"
        assert "Cookie" in response.headers["Vary"]


def test_no_page_shows_a_moderator_an_address_or_a_network(desk: Desk, site: records.Site) -> None:
    eve = records.Author("Eve", "https://eve.example", "canary@mail.example", "g:eve")
    row = _held(
        site, "some text", 1, author=eve, sender=classifier_verdicts.Sender("198.51.100.77")
    )
    sample_threads.post(
        site, "more", author=eve, sender=classifier_verdicts.Sender("198.51.100.77")
    )
    site_settings.change("demo", moderators=["boss@mail.example"])
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=sample_threads.START, handlers=wiring.HANDLERS)
    seen = "".join(
        desk.page(path)
        for path in (
            "/queue", "/queue?status=any", f"/comments/{row.id}", "/author?id=g%3Aeve", "/authors",
            "/threads", "/thread?thread=page", "/log", "/rules", "/reported", "/statistics",
            "/queue?status=any&q=Eve",
        )
    )  # fmt: skip
    seen += desk.send("/queue", "approve", row, accept="application/json").text
    assert "Eve" in seen
    for canary in ("mail.example", "198.51.100", account_holders.PASSWORD):
        assert canary not in seen
    # A search cannot reveal these values either.
    for words in ("canary", "mail.example", "198.51.100"):
        assert f"comments/{row.id}" not in desk.page(f"/queue?status=any&q={words}")


@pytest.mark.slow
def test_the_pages_are_valid_html_without_active_content(desk: Desk, site: records.Site) -> None:
    eve = records.Author("Eve", "https://eve.example", id="g:eve")
    root = sample_threads.post(site, "# Head\n\n[x](https://x.example)\n\n> quote", author=eve)
    row = _held(site, "some text", 1, parent=root.id, author=eve)
    again = [_held(site, f"text {number}", number, author=eve) for number in range(30)]
    documents = [desk.page(path) for path in (
        "/queue", "/queue?status=any&q=text", "/queue?status=spam", f"/comments/{row.id}",
        "/author?id=g%3Aeve", "/authors", "/threads", "/thread?thread=page", "/log",
    )]  # fmt: skip
    documents.append(desk.send("/queue", "approve", *again[:2]).text)
    for document in documents:
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|<img", document)
    assert html_validator.complaints(documents) == [[]] * len(documents)


def test_guests_content_is_text_or_sanitized_on_every_moderation_page(
    desk: Desk, site: records.Site
) -> None:
    """Names, titles and ids are text; the only HTML is what `rendering` produced."""
    nasty = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>"
    row = _held(
        site, f"{nasty}\n\n[x](javascript:alert(1))", 1, thread=nasty, title=nasty,
        url="http://evil.example/?" + "a", author=records.Author(nasty[:60], id=f"g:{nasty}"),
    )  # fmt: skip
    decisions.decide("demo", row.id, Verb.SPAM, ADA, now=sample_threads.START, reason=nasty)
    links = ["/queue?status=spam", "/log", "/threads", f"/comments/{row.id}"]
    first = desk.page(links[0])
    found = re.findall(r'href="[./]*admin/sites/demo(/(?:author|thread)\?[^"]*)"', first)
    links += [link.replace("&amp;", "&") for link in dict.fromkeys(found)]
    assert len(links) == 6
    for link in links:
        document = html_reader.Document(re.sub(r"<input[^>]*>", "", desk.page(link)))
        assert {"script", "img"} & set(document.tags) <= {"script"}
        assert all(
            values.get("src", "").partition("?")[0].endswith("console.js")
            for tag, values in document.elements
            if tag == "script"
        )
        for _, values in document.elements:
            assert not any(name.startswith("on") for name in values)
            assert "evil.example" not in (values.get("href") or "")
            assert not (values.get("href") or "").startswith("javascript")


def test_of_two_concurrent_decisions_one_takes_effect_and_both_are_reported(
    app: flask.Flask, desk: Desk, held: list[records.Comment]
) -> None:
    account_holders.account("cat", moderator())
    other = Desk(app, "cat")
    first = desk.send("/queue", "approve", *held)
    second = other.send("/queue", "spam", *held)
    assert "Approve: 3 of 3 done." in first.text
    assert "Mark as spam: 0 of 3 done." in second.text
    assert [_status(row) for row in held] == [Status.APPROVED] * 3
