"""Each thread shows the right title, page URL and categories."""

import itertools
import json
import re
from datetime import timedelta
from typing import Any

import flask.testing
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.records import Policy, Status, Verb
from comments.events import audit_log, webhooks
from comments.moderation import decisions
from comments.moderation.policy import thread_overrides
from comments.reading.compaction import compactor
from comments.store import connection, ownership, reads, transactions
from comments.store.memory import per_process
from comments.store.models import comment_rows, conversion
from comments.threads import naming, thread_info
from comments.tree import values
from comments.tree.bulk import bulk_append, recategorize
from comments.upkeep.integrity import recount
from comments.upkeep.migrations import upgrades
from tests.support.histories import counter_oracle
from tests.support.people.console_browser import Desk
from tests.support.threads import compaction, moderated_site, sample_threads

ADA = records.Actor("cli", "Ada")
NOW = sample_threads.START + timedelta(days=1)
ORIGIN = "http://localhost:8080"
PATHS = ("/embed/demo?thread=page", "/embed/demo/fragment?thread=page", "/feeds/demo",
         "/feeds/demo/thread?thread=page", "/api/v1/sites/demo/comments?thread=page")  # fmt: skip
CATEGORIES = ("ape", "bee", "cat", "dog")
THREADS = itertools.count()


def post(site: records.Site, word: str, minute: int = 0, **more: Any) -> records.Comment:
    """Post a comment with `word` in its title, URL and category."""
    more.setdefault("categories", (word,))
    return sample_threads.post(
        sample_threads.filing(site, *CATEGORIES), f"text {word}",
        now=sample_threads.START + timedelta(minutes=minute),
        title=f"title {word}", url=f"{ORIGIN}/{word}", **more,
    )  # fmt: skip


def judge(comment: records.Comment, verb: Verb) -> None:
    (told,) = decisions.decide_many("demo", [comment.id], verb, ADA, now=NOW)
    assert told.comment is not None, told.message


def shown(thread: str = "page") -> str:
    """Return the word in the thread's title, URL and category, or ""; all three must agree."""
    row = reads.get(comment_rows.thread_key(records.ThreadName("demo", thread)))
    found = conversion.thread_record(row)
    words = {
        found.title.removeprefix("title "), found.url.removeprefix(f"{ORIGIN}/"),
        "".join(found.categories),
    }  # fmt: skip
    assert len(words) == 1, found
    return words.pop()


def pages(client: flask.testing.FlaskClient) -> str:
    answers = [client.get(path) for path in PATHS]
    assert {each.status_code for each in answers} == {200}
    return "".join(each.text for each in answers)


def words(client: flask.testing.FlaskClient) -> set[str]:
    """Return the words in all titles and URLs that readers get."""
    found = re.findall(rf"title (\w+)|{ORIGIN}/(\w+)", pages(client))
    return {title or address for title, address in found}


def compact() -> None:
    """Compact the thread and empty the caches."""
    compaction.whole(sample_threads.name_of(records.Site("demo", (), "", 2)))
    compaction.forget()


# --- Which comment names a thread --------------------


def test_a_held_comments_title_is_shown_once_it_is_approved(
    client: flask.testing.FlaskClient, store: connection.Store, site: records.Site
) -> None:
    moderated_site.policy(Policy.ALL)
    first = post(site, "ape")
    assert (shown(), words(client)) == ("", set())
    judge(first, Verb.APPROVE)
    assert (shown(), words(client)) == ("ape", {"ape"})


@pytest.mark.parametrize("verb", [Verb.HIDE, Verb.REJECT, Verb.SPAM, Verb.HOLD, None])
@pytest.mark.parametrize("is_compacted", [True, False])
def test_a_removed_comments_title_disappears_at_once(
    client: flask.testing.FlaskClient,
    store: connection.Store,
    site: records.Site,
    verb: Verb | None,
    is_compacted: bool,
) -> None:
    first, second = post(site, "ape"), post(site, "bee", 1)
    third = post(site, "cat", 2, parent=first.id)
    if is_compacted:
        compact()
    assert words(client) == {"ape"}
    for gone, left in ((first, {"bee"}), (second, {"cat"}), (third, set())):
        judge(gone, verb) if verb else sample_threads.retract(gone)
        assert words(client) == left
    compact()
    assert words(client) == set()


def test_another_process_stops_showing_a_hidden_title(
    app: flask.Flask, store: connection.Store, site: records.Site
) -> None:
    first, second = post(site, "ape"), post(site, "bee", 1)
    compact()
    client = app.test_client()
    assert words(client) == {"ape"}
    # Simulate a decision in a different process: this process keeps its cached directory and
    # thread.
    kept = dict(store.kept)
    per_process.fresh_process(store)
    judge(first, Verb.HIDE)
    store.kept.update(kept)
    page = client.get("/embed/demo?thread=page").text
    assert "title ape" not in page
    assert "title bee" in page
    assert "title ape" not in client.get("/feeds/demo/thread?thread=page").text
    assert "title ape" not in client.get("/feeds/demo").text
    judge(second, Verb.HIDE)


def test_an_older_comment_that_is_approved_later_names_the_thread(
    store: connection.Store, site: records.Site
) -> None:
    moderated_site.policy(Policy.ALL)
    first, second = post(site, "ape"), post(site, "bee", 1)
    judge(second, Verb.APPROVE)
    assert shown() == "bee"
    judge(first, Verb.APPROVE)
    assert shown() == "ape"


def test_a_later_comment_changes_nothing_and_writes_no_thread(
    store: connection.Store, site: records.Site
) -> None:
    first = post(site, "ape")
    before = reads.get(comment_rows.thread_key(sample_threads.name_of(site)))
    post(site, "bee", 1, parent=first.id)
    assert reads.get(comment_rows.thread_key(sample_threads.name_of(site))) == before


def test_webhooks_contain_no_title_of_a_held_comment(
    store: connection.Store, site: records.Site
) -> None:
    moderated_site.policy(Policy.ALL)
    first = post(site, "ape")
    told = webhooks.body(
        next(iter(webhooks.Type)), NOW, first, thread_info.fresh(sample_threads.name_of(site))
    )
    assert (json.loads(told)["data"]["title"], json.loads(told)["data"]["url"]) == ("", "")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["post", "hold", "reply", "approve", "hide", "spam", "retract", "compact"]),
        st.integers(0, 5),
    ),
    max_size=12,
)


class Story:
    """A thread that changes step by step through posts and moderators' decisions."""

    def __init__(self, site: records.Site) -> None:
        self.site = site
        self.name = records.ThreadName("demo", f"thread {next(THREADS)}")
        self.rows: list[records.Comment] = []

    def take(self, step: str, number: int) -> None:
        chosen = self.rows[number % len(self.rows)] if self.rows else None
        if step in {"post", "hold", "reply"}:
            self._write(step, number)
        elif step == "compact":
            compactor.compact(sample_threads.SETTINGS.scheme, self.name)
        elif chosen is None or status(chosen) == Status.RETRACTED:
            pass
        elif step == "retract":
            sample_threads.retract(chosen)
        elif step != "hide" or status(chosen) == Status.APPROVED:
            judge(chosen, Verb(step))

    def _write(self, step: str, number: int) -> None:
        moderated_site.policy(Policy.ALL if step == "hold" else Policy.OFF)
        parents = [row.id for row in self.rows if status(row) == Status.APPROVED]
        parent = parents[number % len(parents)] if step == "reply" and parents else None
        place = len(self.rows)
        word = CATEGORIES[place % len(CATEGORIES)]
        self.rows.append(post(self.site, word, place, thread=self.name.id, parent=parent))

    @property
    def expected(self) -> str:
        approved = [n for n, row in enumerate(self.rows) if status(row) == Status.APPROVED]
        return CATEGORIES[approved[0] % len(CATEGORIES)] if approved else ""


def status(row: records.Comment) -> str:
    return str(reads.get(comment_rows.comment_key(row.id)).status)


@pytest.mark.slow
@examples(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_a_thread_shows_the_title_of_its_oldest_approved_comment(
    store: connection.Store, site: records.Site, steps: list[tuple[str, int]]
) -> None:
    story = Story(site)
    for step in steps:
        story.take(*step)
        assert not story.rows or shown(story.name.id) == story.expected
    moderated_site.policy(Policy.OFF)
    recategorize.finish(now=NOW, steps=100)
    assert list(reads.fetch(reads.Query("Job"))) == []
    moderated_site.settle()
    assert recount.site("demo", tell=print, fixes=False) == 0
    counter_oracle.assert_all_counted()


def test_an_erased_comment_keeps_nothing_of_its_title(
    store: connection.Store, site: records.Site
) -> None:
    first = post(site, "dog")
    sample_threads.retract(first)
    row = reads.get(comment_rows.comment_key(first.id))
    assert naming.decode(row.brought) == naming.Brought()
    for kind in ("Thread", "Comment", "BucketDirectory"):
        for message in reads.fetch(reads.Query(kind)):
            assert "dog" not in str(message)


# --- What a moderator sets --------------------


def test_a_moderators_title_stays_until_it_is_reset(
    client: flask.testing.FlaskClient, store: connection.Store, site: records.Site
) -> None:
    first = post(site, "ape")
    post(site, "bee", 1)
    compact()
    pages(client)
    wanted = thread_overrides.NewDetails("title own", f"{ORIGIN}/own", ["dog"])
    found = thread_overrides.change_details(site, "page", wanted, ADA, now=NOW)
    assert (found.moved, found.thread.categories) == (2, ("dog",))
    compact()
    assert words(client) == {"own"}
    sample_threads.retract(first)
    assert words(client) == {"own"}
    assert audit_log.log("demo")[0].after == "set by moderators: categories, title, url"
    back = thread_overrides.change_details(
        site, "page", thread_overrides.NewDetails(inherits=["title"]), ADA, now=NOW
    )
    assert (back.thread.title, back.thread.own) == ("title bee", ("categories", "url"))
    thread_overrides.change_details(
        site, "page", thread_overrides.NewDetails(inherits=thread_overrides.FIELDS), ADA, now=NOW
    )
    assert shown() == "bee"
    compact()
    assert words(client) == {"bee"}


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (thread_overrides.NewDetails(url="https://elsewhere.example/x"), "url"),
        (thread_overrides.NewDetails(title="x" * 501), "title"),
        (thread_overrides.NewDetails(categories=["a//b"]), "categories"),
        (thread_overrides.NewDetails(title="x", inherits=["title"]), "inherit"),
        (thread_overrides.NewDetails(inherits=["state"]), "inherit"),
    ],
)
def test_an_invalid_title_url_or_category_is_refused_by_its_field(
    store: connection.Store, site: records.Site, wanted: thread_overrides.NewDetails, field: str
) -> None:
    post(site, "ape")
    with pytest.raises(errors.BadInput) as refused:
        thread_overrides.change_details(site, "page", wanted, ADA, now=NOW)
    assert refused.value.field == field
    assert shown() == "ape"


def test_an_unknown_thread_cannot_be_named(store: connection.Store, site: records.Site) -> None:
    with pytest.raises(errors.NotFound):
        thread_overrides.change_details(
            site, "nowhere", thread_overrides.NewDetails("x"), ADA, now=NOW
        )


def test_the_console_sets_and_resets_a_title(desk: Desk, site: records.Site) -> None:
    post(site, "ape")
    where = "/thread/title?thread=page"
    same = {"url": f"{ORIGIN}/ape", "categories": "ape"}
    desk.settle(where, title="title own", **same)  # type: ignore[arg-type]
    page = desk.page("/thread?thread=page")
    assert 'value="title own"' in page
    assert "Set by moderators: title." in page
    desk.settle(where, act="inherit", title="x", **same)  # type: ignore[arg-type]
    assert shown() == "ape"
    desk.settle(where, status=400, title="x", url="https://elsewhere.example/")
    desk.settle("/thread/title?thread=nowhere", status=404, title="x")


def test_the_console_shows_moderators_the_title_of_a_held_comment(
    desk: Desk, site: records.Site
) -> None:
    moderated_site.policy(Policy.ALL)
    first = post(site, "ape")
    assert "<bdi>title ape</bdi>" in desk.page(f"/comments/{first.id}")
    judge(first, Verb.APPROVE)
    assert "not shown to readers" not in desk.page(f"/comments/{first.id}")


# --- Threads of older releases --------------------


def age(thread: str = "page") -> None:
    """Convert a thread and its comments to the format of older releases, which stored one title."""

    def body() -> None:
        row = reads.get(comment_rows.thread_key(records.ThreadName("demo", thread)))
        row.named_by, row.named_at, row.filed = None, None, 0
        row.title, row.url, row.categories = "title ape", f"{ORIGIN}/ape", ["ape"]
        query = reads.Query("Comment", where=(("thread", "=", row.key.id()),), keys_only=True)
        ids = [message.key.path[-1].name for message in reads.fetch(query)]
        comments = reads.get_multi([comment_rows.comment_key(each) for each in ids])
        for comment in comments:
            comment.brought = None
            comment.categories = ["ape"]
        transactions.apply(ownership.Writes("tree", put=(row, *comments)))

    transactions.transaction(body)


def test_an_old_thread_keeps_its_first_comments_title_while_that_is_approved(
    client: flask.testing.FlaskClient, store: connection.Store, site: records.Site
) -> None:
    first = post(site, "ape")
    post(site, "bee", 1)
    age()
    upgrades.begin()
    upgrades.go_on(steps=None)
    assert (shown(), words(client)) == ("ape", {"ape"})
    judge(first, Verb.HIDE)
    assert (shown(), words(client)) == ("", set())
    judge(first, Verb.RESTORE)
    assert shown() == "ape"
    judge(first, Verb.HIDE)
    post(site, "cat", 5)
    assert shown() == "cat"


@pytest.mark.parametrize("verb", [Verb.HIDE, None])
def test_an_old_thread_loses_a_title_that_must_not_be_visible(
    client: flask.testing.FlaskClient,
    store: connection.Store,
    site: records.Site,
    verb: Verb | None,
) -> None:
    first = post(site, "ape")
    post(site, "bee", 1)
    judge(first, verb) if verb else sample_threads.retract(first)
    age()
    compact()
    assert words(client) == {"ape"}
    upgrades.begin()
    upgrades.go_on(steps=None)
    compact()
    assert (shown(), words(client)) == ("", set())
    row = reads.get(comment_rows.comment_key(first.id))
    assert naming.decode(row.brought).title == ("title ape" if verb else "")


def test_a_decision_about_an_old_thread_does_not_wait_for_the_upgrade(
    client: flask.testing.FlaskClient, store: connection.Store, site: records.Site
) -> None:
    first = post(site, "ape")
    post(site, "bee", 1)
    age()
    judge(first, Verb.SPAM)
    assert (shown(), words(client)) == ("", set())
    recategorize.finish(now=NOW, steps=100)
    thread_overrides.change_details(
        site, "page", thread_overrides.NewDetails("title own"), ADA, now=NOW
    )
    assert words(client) == {"own"}


def test_a_moderator_can_name_an_old_thread_first(
    store: connection.Store, site: records.Site
) -> None:
    post(site, "ape")
    age()
    found = thread_overrides.change_details(
        site, "page", thread_overrides.NewDetails("title own"), ADA, now=NOW
    ).thread
    assert (found.title, found.url, found.own) == ("title own", f"{ORIGIN}/ape", ("title",))
    thread_overrides.change_details(
        site, "page", thread_overrides.NewDetails(inherits=["title"]), ADA, now=NOW
    )
    assert shown() == "ape"


def test_an_interrupted_upgrade_continues_and_ends(
    store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrades, "AT_ONCE", 2)
    for number in range(5):
        post(site, "ape", thread=f"page {number}")
        age(f"page {number}")
    assert upgrades.go_on(steps=1) == 0  # No scan has begun
    upgrades.begin()
    assert upgrades.go_on(steps=1) == 2
    assert (
        upgrades.go_on(steps=None) == 3 + 5 + 5 + 5 + 1
    )  # Threads three times, comments, the site
    rows = reads.fetch(reads.Query("Thread"))
    assert all(message.properties["named_by"].string_value for message in rows)
    assert upgrades.go_on(steps=20) == 0


def test_an_import_names_its_thread_and_no_other(
    store: connection.Store, site: records.Site
) -> None:
    node = sample_threads.node("old")

    def bring(thread: str) -> None:
        change = bulk_append.append_imported(
            sample_threads.SETTINGS.scheme,
            [
                values.ImportedThread(
                    records.ThreadName("demo", thread), [node], "title ape", f"{ORIGIN}/ape"
                )
            ],
            now=NOW,
        )
        transactions.apply(*change.writes)

    transactions.transaction(lambda: bring("other"))
    assert thread_info.fresh(records.ThreadName("demo", "other")).title == "title ape"
