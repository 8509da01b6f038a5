"""Each token changes only its author's data on its site; all other rows keep every byte.

An account can write on many sites under the same id, and each site's pages can read the account's
token for that site. Therefore, the tests also try every call with the same account's token for a
different site.
"""

from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient

from comments import (
    app as apps,
)
from comments import config
from comments.accounts import accounts
from comments.domain import records
from comments.limits.site_request import SiteRequest
from comments.notifications import double_opt_in, subscriptions
from comments.posting import admission, cast_vote, new_comment
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import subscription_rows
from comments.transfer import personal_data
from comments.tree import votes
from comments.web.api.callers import api_tokens
from tests.support import store_snapshot
from tests.support.people import account_holders, api_requests
from tests.support.people.account_holders import SECRET
from tests.support.threads import sample_threads

SETTINGS = config.Settings(secret=SECRET)


class TwoSites:
    """Two sites, an account that wrote and voted on both, and several callers' tokens."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client
        now, scheme = datetime.now(UTC), sample_threads.SETTINGS.scheme
        self.sites = {
            name: site_settings.add(name, [f"https://{name}.example"], scheme=scheme, now=now)
            for name in ("demo", "blog")
        }
        self.ann = account_holders.account("ann", password="")
        self.bob = account_holders.account("bob", password="")
        self.rows = {name: self.say(name, self.ann.author, f"ann on {name}") for name in self.sites}
        self.others = {name: self.say(name, "g:eve", f"eve on {name}") for name in self.sites}
        for name, row in self.others.items():
            request = sample_threads.request(name, settings=SETTINGS, now=now, network="192.0.2.1")
            cast_vote.vote(row.id, self.ann.author, votes.UP, request)
        self.subscriber = double_opt_in.subscriber_of("ann@example.org", SECRET)
        for name in self.sites:
            wanted = subscriptions.SubscriptionTarget(name, "", self.ann.author, replies=True)
            subscriptions.subscribe(self.subscriber, "sealed", wanted, now=now)

    def say(self, site: str, author: str, body: str) -> records.Comment:
        draft = admission.Submission("t", None, records.Author("X", id=author), body)
        return new_comment.post(
            draft, SiteRequest(self.sites[site], SETTINGS, datetime.now(UTC))
        ).comment

    def token(self, site: str, account: accounts.Account) -> dict[str, str]:
        member = api_tokens.Member(site, account.id, account.epoch)
        return {"Authorization": f"Bearer {api_tokens.sign(member, secret=SECRET)}"}

    @property
    def strangers(self) -> dict[str, dict[str, str]]:
        """Return the tokens of callers who may not change Ann's comment on "demo"."""
        guests = {
            f"guest of {site}": api_tokens.sign(api_tokens.Guest(site, "g:eve"), secret=SECRET)
            for site in self.sites
        }
        ended = api_tokens.Member("demo", self.ann.id, "another epoch")
        nobody = api_tokens.Member("demo", "a" * 26, self.ann.epoch)
        return {
            "nobody": {},
            "another account": self.token("demo", self.bob),
            "herself on another site": self.token("blog", self.ann),
            "herself on no site": self.token("", self.ann),
            **{name: {"Authorization": f"Bearer {token}"} for name, token in guests.items()},
            **{
                name: {"Authorization": f"Bearer {api_tokens.sign(member, secret=SECRET)}"}
                for name, member in {"an ended token": ended, "an account gone": nobody}.items()
            },
            "her id as a guest of another site": {
                "Authorization": "Bearer "
                + api_tokens.sign(api_tokens.Guest("blog", self.ann.author), secret=SECRET)
            },
        }


@pytest.fixture
def two_sites(store: connection.Store) -> TwoSites:
    return TwoSites(apps.create_app(SETTINGS, store).test_client())


CHANGES = [
    ("PATCH", "", {"body": "another text"}),
    ("DELETE", "", None),
]


@pytest.mark.parametrize(("method", "path", "sent"), CHANGES)
def test_only_the_authors_token_for_the_site_changes_a_comment(
    two_sites: TwoSites, method: str, path: str, sent: dict[str, str] | None
) -> None:
    one = f"{api_requests.ONE}{two_sites.rows['demo'].id}{path}"
    stored = store_snapshot.everything()
    for name, headers in two_sites.strangers.items():
        answer = two_sites.client.open(one, method=method, json=sent, headers=headers)
        assert answer.status_code in {401, 403, 404}, name
        assert store_snapshot.everything() == stored, name
    mine = two_sites.client.open(
        one, method=method, json=sent, headers=two_sites.token("demo", two_sites.ann)
    )
    assert mine.status_code == 200
    assert store_snapshot.everything() != stored


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_guest_cannot_change_a_comment_in_another_thread_of_the_site(
    two_sites: TwoSites, method: str
) -> None:
    """A guest's token gives access only to the guest's own comments, in any thread."""
    draft = admission.Submission("t2", None, records.Author("Bob"), "in t2")
    request = SiteRequest(two_sites.sites["demo"], SETTINGS, datetime.now(UTC))
    row = new_comment.post(draft, request).comment
    posted = api_requests.post(two_sites.client)
    stored = store_snapshot.everything()
    sent = {"body": "x"} if method == "PATCH" else None
    answer = two_sites.client.open(
        f"{api_requests.ONE}{row.id}", method=method, json=sent, headers=api_requests.bearer(posted)
    )
    assert answer.status_code == 403
    assert store_snapshot.everything() == stored


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [("PUT", "/vote", {"value": -1}), ("DELETE", "/vote", None), ("POST", "/report", {})],
)
def test_a_token_of_another_site_neither_votes_nor_reports(
    two_sites: TwoSites, method: str, path: str, sent: dict[str, object] | None
) -> None:
    stored = store_snapshot.everything("RateBucket")
    answer = two_sites.client.open(
        f"{api_requests.ONE}{two_sites.others['demo'].id}{path}",
        method=method,
        json=sent,
        headers=two_sites.token("blog", two_sites.ann),
    )
    assert answer.status_code == 404
    assert store_snapshot.everything("RateBucket") == stored


def test_an_export_by_a_sites_token_contains_only_that_site(two_sites: TwoSites) -> None:
    told = {}
    for name in two_sites.sites:
        path, headers = f"/api/v1/sites/{name}/author", two_sites.token(name, two_sites.ann)
        told[name] = api_requests.answer(two_sites.client.get(path, headers=headers))
    for name, found in told.items():
        assert [each["body"] for each in found["comments"]] == [f"ann on {name}"]
        assert found["votes"] == {two_sites.others[name].id: 1}
        assert found["mailed"] == 1
        # The site's page does not need the login name, which is for signing in elsewhere.
        assert found["account"]["login"] == ""
    everything = personal_data.export(
        two_sites.ann.author, secret=sample_threads.SETTINGS.secret, now=sample_threads.START
    )
    assert len(everything.comments) == len(everything.votes) == everything.mailed == 2
    assert everything.account is not None
    assert everything.account.login == "ann"


def test_an_erasure_by_a_sites_token_covers_only_that_site(two_sites: TwoSites) -> None:
    path, headers = "/api/v1/sites/demo/author", two_sites.token("demo", two_sites.ann)
    erased = api_requests.answer(two_sites.client.delete(path, headers=headers))
    assert erased == {"comments": 1, "votes": 1, "done": True}
    left = personal_data.export(
        two_sites.ann.author, secret=sample_threads.SETTINGS.secret, now=sample_threads.START
    )
    assert [each.body for each in left.comments] == ["ann on blog"]
    assert left.votes == {two_sites.others["blog"].id: 1}
    assert len(subscriptions.of_subscriber(two_sites.subscriber)) == 1
    # The account still exists for the other site. The account disappears when the other site's data
    # is erased too.
    there = "/api/v1/sites/blog/author"
    assert (
        two_sites.client.delete(there, headers=two_sites.token("blog", two_sites.ann)).status_code
        == 200
    )
    assert accounts.get(two_sites.ann.id) is None
    assert subscriptions.of_subscriber(two_sites.subscriber) == []
    assert reads.get(subscription_rows.subscriber_key(two_sites.subscriber)) is None


def test_erasing_one_author_keeps_subscriptions_of_other_authors(two_sites: TwoSites) -> None:
    """The victim has confirmed a subscription to replies to the erased author."""
    hers = double_opt_in.subscriber_of("victim@example.org", SECRET)
    now = datetime.now(UTC)
    for author in (two_sites.ann.author, "g:victim"):
        wanted = subscriptions.SubscriptionTarget("demo", "", author, replies=True)
        subscriptions.subscribe(hers, "sealed", wanted, now=now)
    personal_data.erase(two_sites.ann.author, now=now, site="demo")
    assert [each.name for each in subscriptions.of_subscriber(hers)] == [
        subscriptions.name_of_replies("demo", "g:victim")
    ]


def test_votes_of_a_site_are_found_for_any_thread_id(two_sites: TwoSites) -> None:
    now = datetime.now(UTC)
    cast = {}
    for site, thread in (("demo", "x" * 600), ("demo", "short"), ("blog", "y" * 600)):
        author = records.Author("X", id="g:x")
        draft = admission.Submission(thread, None, author, thread)
        row = new_comment.post(draft, SiteRequest(two_sites.sites[site], SETTINGS, now)).comment
        request = sample_threads.request(site, settings=SETTINGS, now=now, network="192.0.2.9")
        cast_vote.vote(row.id, "g:long", votes.DOWN, request)
        cast.setdefault(site, {})[row.id] = -1
    assert {site: dict(votes.by("g:long", site)) for site in cast} == cast
    assert dict(votes.by("g:long")) == cast["demo"] | cast["blog"]
    assert dict(votes.by("g:long", "dem")) == dict(votes.by("g:long", "")) == {}
