"""Export and erasure cover all of an author's data and no other author's data."""

import gzip
import json
import zlib
from datetime import timedelta
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient

from comments import config, errors
from comments.accounts import accounts, identities
from comments.domain import records
from comments.limits.site_request import SiteRequest
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action, Rule
from comments.notifications import double_opt_in, subscriptions
from comments.posting import admission, cast_vote, new_comment
from comments.sites import site_settings
from comments.store import connection, reads
from comments.transfer import personal_data
from comments.tree import votes
from comments.tree.lists import listed_comments, ordered_query
from comments.upkeep import scheduler, wiring
from comments.upkeep.integrity import recount, repair
from tests.comments import kinds
from tests.support.histories import counter_oracle
from tests.support.people import account_holders, api_requests, site_tokens
from tests.support.people.account_holders import SECRET, here
from tests.support.prepared_stores import NOW
from tests.support.threads import sample_threads

ME = "/api/v1/sites/demo/author"


@pytest.fixture
def shared(store: connection.Store, client: FlaskClient) -> str:
    return site_tokens.share()


def _enter(client: FlaskClient, shared: str, **more: Any) -> dict:
    sent = {"token": site_tokens.token(shared, **more)}
    return api_requests.answer(client.post("/api/v1/sites/demo/session", json=sent))


def _say(client: FlaskClient, who: dict | None, body: str, **more: Any) -> dict:
    headers = api_requests.bearer(who) if who else {}
    sent = {"name": "Guest", "body": body, **more}
    return api_requests.answer(client.post(api_requests.THREAD, json=sent, headers=headers))


def test_an_export_contains_all_of_an_authors_data_and_nothing_of_others(
    client: FlaskClient, shared: str
) -> None:
    other = _say(client, None, "By a guest", email="guest@example.org")
    ann = _enter(client, shared)
    first = _say(client, ann, "One", website="https://ann.example", email="ann@example.org")
    parent = other["comment"]["id"]
    _say(client, ann, "Two", parent=parent)
    client.put(
        f"{api_requests.ONE}{parent}/vote", json={"value": -1}, headers=api_requests.bearer(ann)
    )
    response = client.get(ME, headers=api_requests.bearer(ann))
    assert response.headers["Cache-Control"] == "private, no-store"
    assert "Authorization" in response.headers["Vary"]
    found = api_requests.answer(response)
    assert found["account"]["name"] == "Ann"
    assert {(each["body"], each["reply_to"]) for each in found["comments"]} == {
        ("One", None), ("Two", parent),
    }  # fmt: skip
    (one,) = (each for each in found["comments"] if each["id"] == first["comment"]["id"])
    assert (one["email"], one["website"]) == ("ann@example.org", "https://ann.example")
    assert found["votes"] == {parent: -1}
    assert "guest" not in response.text.lower()
    guests = api_requests.answer(client.get(ME, headers=api_requests.bearer(other)))
    assert [each["body"] for each in guests["comments"]] == ["By a guest"]


def test_an_export_by_token_hides_shadow_bans_and_an_operators_shows_them(
    client: FlaskClient, store: connection.Store, shared: str
) -> None:
    del store
    ann, ada = _enter(client, shared), records.Actor("cli", "Ada")
    for action in (Action.SHADOW, Action.SPAM, Action.HOLD):
        rule = Rule(id=action, action=action, words=(f"word{action}",))
        policy_changes.put_rule("demo", rule, ada, now=NOW)
        _say(client, ann, f"word{action}")
    _say(client, ann, "wordless")
    told = api_requests.answer(client.get(ME, headers=api_requests.bearer(ann)))["comments"]
    assert {each["body"]: each["status"] for each in told} == {
        "wordshadow": "approved", "wordspam": "pending", "wordhold": "pending",
        "wordless": "approved",
    }  # fmt: skip
    account = accounts.by_identity(_identity(), SECRET)
    assert account is not None
    told = personal_data.export(
        account.author, secret=sample_threads.SETTINGS.secret, now=sample_threads.START
    )
    assert {each.body: each.status.value for each in told.comments} == {
        "wordshadow": "shadowed", "wordspam": "spam", "wordhold": "pending", "wordless": "approved",
    }  # fmt: skip


def test_a_token_reaches_its_own_site_alone(client: FlaskClient, shared: str) -> None:
    site_settings.add(
        "blog", ["https://blog.example"], scheme=sample_threads.SETTINGS.scheme, now=here()
    )
    ann = _enter(client, shared)
    for method in ("GET", "DELETE"):
        refused = client.open(
            "/api/v1/sites/blog/author", method=method, headers=api_requests.bearer(ann)
        )
        api_requests.refused(refused, 401)
        api_requests.refused(client.open(ME, method=method), 401)
    # This token gives no access to the account's comments on a different site.
    account = accounts.by_identity(_identity(), SECRET)
    assert account is not None
    author = account.author
    blog = site_settings.get("blog")
    draft = admission.Submission("t", None, records.Author("Ann", id=author), "On the blog")
    said = new_comment.post(draft, SiteRequest(blog, sample_threads.SETTINGS, here())).comment
    assert api_requests.answer(client.get(ME, headers=api_requests.bearer(ann)))["comments"] == []
    assert api_requests.answer(client.delete(ME, headers=api_requests.bearer(ann)))["done"]
    assert listed_comments.with_ancestors(said.id)[0].body == "On the blog"


def _identity() -> identities.Identity:
    return identities.of_provider("site/demo", "42")


CANARIES = ("Zebedee", "zebedee@example.org", "zebedee.example", "The canary sings", "42")


def test_erased_data_is_nowhere_and_the_thread_stays_intact(
    client: FlaskClient, store: connection.Store, shared: str
) -> None:
    settings = config.Settings(secret=SECRET)
    zeb = _enter(client, shared, name="Zebedee")
    more = {"website": "https://zebedee.example", "email": "zebedee@example.org"}
    root = _say(client, zeb, "The canary sings", **more)["comment"]["id"]
    reply = _say(client, None, "A reply", parent=root)["comment"]["id"]
    _say(client, zeb, "The canary sings again", parent=reply, **more)
    client.put(
        f"{api_requests.ONE}{reply}/vote", json={"value": 1}, headers=api_requests.bearer(zeb)
    )
    account = accounts.by_identity(_identity(), SECRET)
    assert account is not None
    wanted = subscriptions.SubscriptionTarget("demo", "", account.author, replies=True)
    subscriber = double_opt_in.subscriber_of("zebedee@example.org", SECRET)
    subscriptions.subscribe(subscriber, "sealed", wanted, now=NOW)
    _settle(settings)
    assert "The canary sings" in _everything(store)
    assert listed_comments.with_ancestors(reply)[0].score == 1

    erased = api_requests.answer(client.delete(ME, headers=api_requests.bearer(zeb)))
    assert erased == {"comments": 2, "votes": 1, "done": True}
    _settle(settings, wait=True)

    held = _everything(store)
    for canary in CANARIES[:4]:
        assert canary not in held
    assert subscriptions.of_subscriber(subscriber) == []
    assert accounts.by_identity(_identity(), SECRET) is None
    name = records.ThreadName("demo", "t")
    shown = ordered_query.thread(name)
    assert [each.status for each in shown] == [records.Status.RETRACTED, records.Status.APPROVED]
    assert shown[1].score == 0
    assert repair.find_problems(settings.scheme, name) == []
    assert recount.site("demo", tell=print, fixes=False) == 0
    # A repeated erasure finds nothing, and the token is no longer valid.
    api_requests.refused(client.delete(ME, headers=api_requests.bearer(zeb)), 401)
    assert personal_data.erase(account.author, now=here()) == personal_data.ErasureStep(
        0, 0, is_done=True
    )


@pytest.mark.usefixtures("store", "site")
def test_a_subscription_on_a_site_without_own_comments_is_counted_and_erased() -> None:
    author = "g:reader"
    wanted = subscriptions.SubscriptionTarget("demo", "demo/page", author)
    subscriber = double_opt_in.subscriber_of("zebedee@example.org", SECRET)
    subscriptions.subscribe(subscriber, "sealed", wanted, now=NOW)
    assert personal_data.export(author, secret=SECRET, now=NOW).mailed == 1
    assert personal_data.erase(author, now=NOW).is_done
    assert personal_data.export(author, secret=SECRET, now=NOW).mailed == 0
    assert subscriptions.of_subscriber(subscriber) == []


def _settle(settings: config.Settings, *, wait: bool = False) -> None:
    """Deliver and compact until nothing is due."""
    made = scheduler.Scheduler(handlers=wiring.handlers(settings))
    while events := counter_oracle.events():
        made.deliver(events)
    for comment in ordered_query.thread(records.ThreadName("demo", "t")):
        cast_vote.count(comment.id, now=here() + timedelta(minutes=1))
    while events := counter_oracle.events():
        made.deliver(events)
    names = [records.ThreadName("demo", "t")]
    scheduler.compact_whole(names, wait=(lambda _: None) if wait else None)


def _everything(store: connection.Store) -> str:
    """Return all stored rows as text, with compressed values unpacked."""
    del store
    found = []
    for kind in kinds.stored():
        for entity in reads.fetch(reads.Query(kind.KIND)):
            found.append(str(entity))
            blobs = (value.blob_value for value in entity.properties.values())
            found += [_unpacked(blob) for blob in blobs if blob]
    return "\n".join(found)


def _unpacked(blob: bytes) -> str:
    for unpack in (gzip.decompress, zlib.decompress, lambda data: zlib.decompress(data, -15)):
        try:
            return unpack(blob).decode("utf-8", "replace")
        except (OSError, zlib.error, EOFError):
            continue
    return blob.decode("utf-8", "replace")


def test_an_interrupted_erasure_continues_where_it_stopped(
    client: FlaskClient, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(personal_data, "AT_ONCE", 2)
    ann = _enter(client, shared)
    for number in range(5):
        _say(client, ann, f"Number {number}")
    steps = []
    while not steps or not steps[-1]["done"]:
        steps.append(api_requests.answer(client.delete(ME, headers=api_requests.bearer(ann))))
    assert [each["comments"] for each in steps] == [2, 2, 1]


def test_an_account_with_a_role_is_not_erased_by_a_token(store: connection.Store) -> None:
    ann = account_holders.account("ann", account_holders.moderator())
    with pytest.raises(errors.Conflict):
        personal_data.erase(ann.author, now=here())
    assert accounts.get(ann.id) == ann


def test_only_the_voters_own_votes_are_found(store: connection.Store, site: records.Site) -> None:
    settings = config.Settings(secret=SECRET)
    ids = []
    for number in range(3):
        draft = admission.Submission(f"t{number}", None, records.Author("Bob"), "b")
        ids.append(new_comment.post(draft, SiteRequest(site, settings, NOW)).comment.id)
    for voter, value in (("g:a", 1), ("g:a0", -1), ("g:ab", 1), ("a:a", 1)):
        for each in ids:
            request = sample_threads.request(
                settings=settings, now=NOW, network=f"network of {voter}"
            )
            cast_vote.vote(each, voter, value, request)
    assert dict(votes.by("g:a")) == dict.fromkeys(ids, 1)
    assert dict(votes.by("g:a0")) == dict.fromkeys(ids, -1)
    assert dict(votes.by("g:")) == {}


class TestCommands:
    @pytest.fixture
    def run(self, app: flask.Flask) -> Any:
        runner = app.test_cli_runner()
        return lambda *arguments: runner.invoke(args=("author", *arguments))

    def test_an_operator_exports_and_erases_by_comment_or_account(
        self, run: Any, client: FlaskClient, open_store: connection.Store
    ) -> None:
        posted = api_requests.post(client, "Ann", "Of a guest", email="ann@example.org")
        named = posted["comment"]["id"]
        exported = json.loads(run("export", named).output)
        assert [each["body"] for each in exported["comments"]] == ["Of a guest"]
        assert exported["account"] is None
        assert run("erase", named, "--yes").output == "Erased 1 comment and 0 votes.\n"
        gone = run("export", named)
        assert gone.exit_code == 1
        assert "There is no author" in gone.output
        with open_store.context():
            account_holders.account("bob", password="")
        assert json.loads(run("export", "bob").output)["account"]["login"] == "bob"
        assert run("erase", "bob").exit_code == 1  # Refused without confirmation
        assert run("erase", "bob", "--yes").exit_code == 0
        assert "There is no account" in run("export", "bob").output
