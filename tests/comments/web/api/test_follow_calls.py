"""Readers follow threads with their token: without mail, privately and within limits."""

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.domain.records import Policy
from comments.events import dispatcher
from comments.moderation import bans
from comments.moderation.policy import policy_changes
from comments.notifications import reader_follows, thread_followers
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.large_sets import membership, set_compaction, set_search
from comments.transfer import personal_data
from comments.tree.counters import totals
from comments.tree.lists import ordered_query
from comments.upkeep import wiring
from comments.web.api.callers import api_tokens
from datastore_emulator import inprocess, testing
from tests.support.histories import counter_oracle
from tests.support.people import account_holders
from tests.support.people.api_requests import answer, bearer, post, refused, stored
from tests.support.threads import sample_threads

FOLLOWING = "/api/v1/sites/demo/following"
HERE = f"{FOLLOWING}?thread=t"
FOLLOWED = "/api/v1/sites/demo/followed"
COUNTS = "/api/v1/sites/demo/counts"
SECRET = sample_threads.SETTINGS.secret
NAME = records.ThreadName("demo", "t")
ADA = records.Actor("cli", "Ada")
NOW = sample_threads.START


def say(client: FlaskClient, thread: str, **more: object) -> dict:
    path = f"/api/v1/sites/demo/comments?thread={thread}"
    return answer(client.post(path, json={"name": "Ann", "body": "Hello", **more}))


def guest(name: str, site: str = "demo") -> dict[str, str]:
    token = api_tokens.sign(api_tokens.Guest(site, f"g:{name}"), secret=SECRET)
    return {"Authorization": f"Bearer {token}"}


def deliver(store: connection.Store) -> None:
    with store.context():
        dispatcher.deliver(
            counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS
        )


def test_a_reader_follows_a_thread_and_stops(client: FlaskClient) -> None:
    ann, bob = bearer(post(client)), guest("bob")
    assert answer(client.get(HERE, headers=ann)) == {"following": False, "followers": 0}
    for _ in range(2):
        assert answer(client.put(HERE, headers=ann)) == {"following": True, "followers": 1}
    assert answer(client.put(HERE, headers=bob)) == {"following": True, "followers": 2}
    for _ in range(2):
        assert answer(client.delete(HERE, headers=ann)) == {"following": False, "followers": 1}
    assert answer(client.get(HERE, headers=ann)) == {"following": False, "followers": 1}
    shown = client.get(HERE, headers=bob)
    assert answer(shown) == {"following": True, "followers": 1}
    assert shown.headers["Cache-Control"] == "private, no-store"


def test_followers_are_counted_with_the_comments_of_threads(
    client: FlaskClient, open_store: connection.Store
) -> None:
    for thread in ("t", "u", "v", "w"):
        say(client, thread)
    for name in ("ann", "bob"):
        client.put(HERE, headers=guest(name))
    client.put(f"{FOLLOWING}?thread=w", headers=guest("ann"))
    deliver(open_store)
    asked = {"threads": ["t", "u", "v", "w", "none"]}
    assert answer(client.post(COUNTS, json=asked)) == {"counts": [1, 1, 1, 1, 0]}
    found = answer(client.post(COUNTS, json={**asked, "followers": True}))
    assert found == {"counts": [1, 1, 1, 1, 0], "followers": [2, 0, 0, 1, 0]}
    assert answer(client.get(HERE, headers=guest("cid")))["followers"] == 2
    with open_store.context():
        assert totals.of_threads([NAME])[0]["followers"] == thread_followers.count(NAME).all == 2


def test_a_reader_lists_the_threads_that_they_follow(client: FlaskClient) -> None:
    url = "http://localhost:8080/u"
    say(client, "u", title="The page", url=url)
    threads = ["ta", "tb", "u", "x" * 600]
    for thread in threads:
        say(client, thread)
        assert client.put(f"{FOLLOWING}?thread={thread}", headers=guest("ann")).status_code == 200
    client.put(f"{FOLLOWING}?thread=u", headers=guest("bob"))
    found, cursor = [], ""
    for _ in range(3):
        page = answer(client.get(f"{FOLLOWED}?limit=2{cursor}", headers=guest("ann")))
        found += page["threads"]
        if page["cursor"] is None:
            break
        cursor = f"&cursor={page['cursor']}"
    assert sorted(each["thread"] for each in found) == sorted(threads)
    (one,) = (each for each in found if each["thread"] == "u")
    assert (one["title"], one["url"]) == ("The page", url)
    code = refused(client.get(f"{FOLLOWED}?limit=2{cursor}", headers=guest("bob")), 400, "cursor")
    assert code == "bad-cursor"
    assert answer(client.get(FOLLOWED, headers=guest("cid"))) == {"threads": [], "cursor": None}


def test_following_needs_a_token_of_the_site_and_a_thread_with_comments(
    client: FlaskClient, open_store: connection.Store
) -> None:
    ann = bearer(post(client))
    before = stored(open_store, "Event")
    for method in ("GET", "PUT", "DELETE"):
        assert refused(client.open(HERE, method=method), 401) == "no-token"
        foreign = client.open(HERE, method=method, headers=guest("ann", "blog"))
        assert refused(foreign, 401) == "token-of-other-site"
        assert refused(client.open(FOLLOWING, method=method, headers=ann), 400, "thread")
    assert refused(client.get(FOLLOWED), 401) == "no-token"
    missing = client.put(f"{FOLLOWING}?thread=none", headers=ann)
    assert refused(missing, 404) == "thread-not-found"
    assert answer(client.delete(f"{FOLLOWING}?thread=none", headers=ann))["following"] is False
    elsewhere = {**ann, "Origin": "https://evil.example"}
    for method in ("GET", "PUT", "DELETE"):
        refused(client.open(HERE, method=method, headers=elsewhere), 403)
    assert stored(open_store, "Follow") == stored(open_store, "FollowerMark") == 0
    assert stored(open_store, "Event") == before


@pytest.mark.settings(follows_per_network=3)
def test_a_network_and_a_reader_can_follow_a_limited_number_of_threads(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for thread in ("t", "u", "v"):
        say(client, thread)
    monkeypatch.setattr(reader_follows, "MOST", 2)
    paths = [f"{FOLLOWING}?thread={thread}" for thread in ("t", "u", "v")]
    for path in paths[:2]:
        assert client.put(path, headers=guest("ann")).status_code == 200
    full = client.put(paths[2], headers=guest("ann"))
    assert refused(full, 409) == "too-many-followed"
    assert client.put(paths[0], headers=guest("ann")).status_code == 200  # Already followed
    client.delete(paths[1], headers=guest("ann"))
    assert client.put(paths[2], headers=guest("ann")).status_code == 200
    late = client.put(paths[0], headers=guest("bob"))
    assert refused(late, 429) == "too-many"
    assert int(late.headers["Retry-After"]) > 0
    assert client.delete(paths[0], headers=guest("ann")).status_code == 200


@pytest.mark.parametrize("way", ["close", "ban", "shadow"])
def test_a_closed_thread_can_be_followed_and_a_ban_does_not_show(
    client: FlaskClient, open_store: connection.Store, way: str
) -> None:
    ann = bearer(post(client))
    with open_store.context():
        if way == "close":
            policy_changes.set_policy("demo", ADA, now=NOW, policy=Policy.CLOSED)
        else:
            (comment,) = ordered_query.thread(NAME)
            scope = bans.BanScope()
            bans.ban(
                "demo", comment.author.id, scope, ADA,
                secret=SECRET, now=NOW, is_shadow=way == "shadow",
            )  # fmt: skip
    assert answer(client.put(HERE, headers=ann)) == {"following": True, "followers": 1}


def test_staff_see_only_the_followers_who_gave_a_name(
    client: FlaskClient, open_store: connection.Store
) -> None:
    for thread in ("t", "u"):
        say(client, thread)
    for name in ("ann", "bob", "cid"):
        client.put(HERE, headers=guest(name))
        client.put(f"{FOLLOWING}?thread=u", headers=guest(name))
    named = HERE.replace("?", "/name?")

    def listed(after: str = "") -> list[tuple[str, str]]:
        with open_store.context():
            page = reader_follows.listed_followers(NAME, after=after, limit=2)
        return [(each.author, each.name) for each in page.lines]

    for name in ("cid", "ann", "bob"):
        shown = client.put(named, headers=guest(name), json={"name": f" user-{name}\u202e "})
        assert answer(shown) == {"following": True, "followers": 3}
    assert listed() == [("g:ann", "user-ann"), ("g:bob", "user-bob")]
    assert listed("g:bob") == [("g:cid", "user-cid")]
    followed = answer(client.get(FOLLOWED, headers=guest("ann")))["threads"]
    assert {each["thread"]: each["name"] for each in followed} == {"t": "user-ann", "u": ""}
    mine = answer(client.get("/api/v1/sites/demo/author", headers=guest("ann")))["follows"]
    assert {each["thread"]: each["shown_name"] for each in mine} == {"t": "user-ann", "u": ""}
    # Following again keeps the name; an empty name hides it; a reader who leaves is not listed.
    client.put(HERE, headers=guest("cid"))
    client.put(named, headers=guest("ann"), json={"name": ""})
    client.delete(HERE, headers=guest("bob"))
    assert listed() == [("g:cid", "user-cid")]
    left = client.put(named, headers=guest("bob"), json={"name": "x"})
    assert refused(left, 409) == "not-following"
    too_long = client.put(named, headers=guest("cid"), json={"name": "x" * 200})
    assert refused(too_long, 400, "name") == "too-long"
    assert listed() == [("g:cid", "user-cid")]


def test_an_erased_reader_is_in_no_set_and_the_export_lists_what_they_followed(
    client: FlaskClient, open_store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "MARKS", 1_000_000)
    for thread in ("t", "u"):
        say(client, thread)
    author = "/api/v1/sites/demo/author"
    for thread in ("t", "u"):
        client.put(f"{FOLLOWING}?thread={thread}", headers=guest("ann"))
    client.put(HERE, headers=guest("bob"))
    with open_store.context():
        assert set_compaction.compact(thread_followers.set_of(NAME))
    exported = answer(client.get(author, headers=guest("ann")))
    assert [(each["site"], each["thread"]) for each in exported["follows"]] == [
        ("demo", "t"), ("demo", "u"),
    ]  # fmt: skip
    assert exported["mailed"] == 0
    monkeypatch.setattr(personal_data, "AT_ONCE", 1)
    done = [answer(client.delete(author, headers=guest("ann")))["done"] for _ in range(2)]
    assert done == [False, True]
    assert answer(client.get(FOLLOWED, headers=guest("ann")))["threads"] == []
    assert answer(client.get(HERE, headers=guest("bob"))) == {"following": True, "followers": 1}
    with open_store.context():
        asking = set_search.sets_to_compact()
        assert sorted(each.text for each in asking) == ["thread:demo/t", "thread:demo/u"]
        for name in asking:
            assert set_compaction.compact(name)
        assert list(set_search.sets_with("~g:ann")) == []
        assert list(membership.every(thread_followers.set_of(NAME), limit=9)) == ["~g:bob"]
    deliver(open_store)
    with open_store.context():
        counter_oracle.assert_followers()


def test_an_account_keeps_what_it_follows_on_other_sites(
    client: FlaskClient, open_store: connection.Store
) -> None:
    post(client)
    with open_store.context():
        site_settings.add(
            "blog", ["https://blog.example"],
            scheme=sample_threads.SETTINGS.scheme, now=sample_threads.START,
        )  # fmt: skip
        found = account_holders.account("ann", password="")
        blog = records.ThreadName("blog", "t")
        reader_follows.follow(blog, found.author, now=sample_threads.START)
        reader_follows.follow(NAME, found.author, now=sample_threads.START)
        member = api_tokens.Member("demo", found.id, found.epoch)
    headers = {"Authorization": f"Bearer {api_tokens.sign(member, secret=SECRET)}"}
    listed = answer(client.get(FOLLOWED, headers=headers))["threads"]
    assert [each["thread"] for each in listed] == ["t"]
    assert answer(client.delete("/api/v1/sites/demo/author", headers=headers))["done"]
    with open_store.context():
        assert reader_follows.is_following(blog, found.author)
        assert not reader_follows.is_following(NAME, found.author)
        left = personal_data.export(found.author, secret=SECRET, now=sample_threads.START)
        assert [each.site for each in left.follows] == ["blog"]
        assert left.account is not None
        while not personal_data.erase(found.author, now=sample_threads.START).is_done:
            pass
        assert not reads.count(reads.Query("Follow"))
        assert not reads.count(reads.Query("Account"))


@pytest.mark.embedded
def test_the_number_of_a_large_sets_readers_costs_few_reads(
    engine: inprocess.Engine, store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_compaction, "SEGMENT_BYTES", 200)
    mailed = [f"m{number:03d}" for number in range(200)]
    silent = [f"~g:{number:03d}" for number in range(300)]
    set_compaction.load(thread_followers.set_of(NAME), [*mailed, *silent])
    assert thread_followers.count(NAME) == (500, 300)
    with testing.meter(engine) as cost:
        thread_followers.count(NAME)
    assert cost.reads <= 3  # The set, twice, and the segment with the first reader
