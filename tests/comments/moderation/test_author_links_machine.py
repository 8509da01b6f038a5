"""Claims, links, bans, imports and erasures in any order equal a naive model."""

from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comments import errors
from comments.accounts import accounts, identities, reader_accounts
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.events import audit_log, dispatcher
from comments.moderation.policy import author_links, policy_changes, rulebook
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection
from comments.transfer import personal_data
from comments.upkeep import wiring
from datastore_emulator import inprocess
from tests.support import prepared_stores
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

NOW = sample_threads.START
SECRET = sample_threads.SETTINGS.secret
ADDRESSES = ("ann@example.org", "bob@example.org")
IMPORTED = [imported_ids.author_ids_of_address(SECRET, "demo", each)[0] for each in ADDRESSES]
NAMELESS = imported_ids.author_ids_of(SECRET, "demo", "name", "ann@example.org")[0]
OTHERS = (NAMELESS, "g:guest")
KINDS = (
    "bring", "post", "claim", "claim", "link", "link", "unlink", "unlink", "allow", "ban", "ban",
    "unban", "erase_as_reader", "erase_as_owner", "switch", "check", "check",
)  # fmt: skip


class Step(NamedTuple):
    kind: str
    one: int
    two: int


class Model:
    """What is true after each step, as plain sets.

    `links` contains pairs of author ids, `claims` the claimant of an imported author ("" if claims
    are refused), `written` the authors of all comments that are not retracted.
    """

    def __init__(self) -> None:
        self.accounts = [_sign_in(address) for address in ADDRESSES]
        self.written: dict[str, str] = {}
        self.links: set[frozenset[str]] = set()
        self.claims: dict[str, str] = {}
        self.bans: set[str] = set()
        self.is_on = True
        self.number = 0
        for place, author in enumerate(self.ids):
            self.take(Step("bring" if author.startswith("i:") else "post", place, 0))

    @property
    def ids(self) -> list[str]:
        return [*IMPORTED, *OTHERS, *(account.author for account in self.accounts)]

    @property
    def known(self) -> set[str]:
        """The authors with comments, who alone can be claimed and linked."""
        return set(self.written.values())

    def person(self, author: str) -> set[str]:
        pairs = {frozenset((one, other)) for one, other in self.claims.items() if other}
        found = {author}
        while more := {one for pair in self.links | pairs if pair & found for one in pair} - found:
            found |= more
        return found

    def owned(self, account: str) -> set[str]:
        claimed = {one for one, owner in self.claims.items() if owner == account and self.is_on}
        return {account} | claimed

    def take(self, step: Step) -> None:
        one, other = (self.ids[number % len(self.ids)] for number in (step.one, step.two))
        getattr(self, step.kind)(step.one, one, other)
        counter = counter_oracle.events()
        dispatcher.deliver(counter, now=NOW, handlers=wiring.HANDLERS)

    def bring(self, _: int, one: str, __: str) -> None:
        """Import a comment, as every import of the same address does."""
        if one not in (*IMPORTED, NAMELESS):
            return
        node = sample_threads.node(f"{self.number}", author=one)
        self.number += 1
        sample_threads.store_imported(records.ThreadName("demo", "page"), node)
        self._note(node.id, one)

    def post(self, _: int, one: str, __: str) -> None:
        if one.startswith("i:") or one in self.bans:
            return
        site, author = site_settings.get("demo"), records.Author("A reader", id=one)
        self.number += 1
        self._note(sample_threads.post(site, f"{self.number}", author=author).id, one)

    def _note(self, comment: str, author: str) -> None:
        self.written[comment] = author

    def claim(self, number: int, _: str, __: str) -> None:
        """Sign in by mail, with a new account if the last one was erased."""
        place = number % len(ADDRESSES)
        account = self.accounts[place] = _sign_in(ADDRESSES[place])
        is_owner = author_links.claim(
            site_settings.get("demo"), ADDRESSES[place], account, secret=SECRET, now=NOW
        )
        if self.is_on and IMPORTED[place] in self.known:
            owner = self.claims.setdefault(IMPORTED[place], account.author)
            self._join(IMPORTED[place])
            assert bool(is_owner) == (owner == account.author)
        else:
            assert not is_owner

    def _join(self, author: str) -> None:
        person = self.person(author)
        if person & self.bans:
            self.bans |= person

    def link(self, _: int, one: str, other: str) -> None:
        if one == other or not {one, other} <= self.known:
            with pytest.raises((errors.BadInput, errors.NotFound)):
                author_links.link("demo", one, other, sample_threads.ADA, now=NOW)
            return
        author_links.link("demo", one, other, sample_threads.ADA, now=NOW)
        self.links.add(frozenset((one, other)))
        self._join(one)

    def unlink(self, number: int, one: str, other: str) -> None:
        pairs = [*map(sorted, self.links), *(list(pair) for pair in self.claims.items() if pair[1])]
        if pairs and number:
            one, other = sorted(pairs)[number % len(pairs)]
        claimed = [a for a, b in ((one, other), (other, one)) if self.claims.get(a) == b]
        if frozenset((one, other)) not in self.links and not claimed:
            with pytest.raises((errors.BadInput, errors.NotFound)):
                author_links.unlink("demo", one, other, sample_threads.ADA, now=NOW)
            return
        author_links.unlink("demo", one, other, sample_threads.ADA, now=NOW)
        self.links.discard(frozenset((one, other)))
        self.claims.update(dict.fromkeys(claimed, ""))

    def allow(self, _: int, __: str, ___: str) -> None:
        for one in [one for one, owner in self.claims.items() if not owner][:1]:
            author_links.allow_claims("demo", one, sample_threads.ADA, now=NOW)
            del self.claims[one]

    def ban(self, _: int, one: str, __: str) -> None:
        policy_changes.ban("demo", one, sample_threads.ADA, now=NOW)
        self.bans |= self.person(one)

    def unban(self, _: int, one: str, __: str) -> None:
        if one in self.bans:
            policy_changes.unban("demo", one, sample_threads.ADA, now=NOW)
            self.bans -= self.person(one)

    def erase_as_reader(self, number: int, _: str, __: str) -> None:
        author = self.accounts[number % len(ADDRESSES)].author
        self._erase(self.owned(author), author, "demo")

    def erase_as_owner(self, _: int, one: str, __: str) -> None:
        self._erase(self.person(one), one, None)

    def _erase(self, ids: set[str], author: str, site: str | None) -> None:
        while not personal_data.erase(author, now=NOW, site=site).is_done:
            pass
        self.written = {comment: one for comment, one in self.written.items() if one not in ids}
        self.links = {pair for pair in self.links if not pair & ids}
        self.claims = {
            one: owner for one, owner in self.claims.items() if not owner or not {one, owner} & ids
        }

    def switch(self, _: int, __: str, ___: str) -> None:
        self.is_on = not self.is_on
        site_settings.change("demo", options={"claims": self.is_on})

    def check(self, *_: object) -> None:
        book = rulebook.from_store("demo")
        assert {ban.author for ban in book.bans} == self.bans
        for author in self.ids:
            person = author_links.person("demo", author)
            assert set(person) == self.person(author)
            everything = personal_data.export(author, secret=SECRET, now=NOW)
            assert _written(everything) == self._comments_of(person)
        for account in self.accounts:
            owned = self.owned(account.author)
            everything = personal_data.export(account.author, "demo", secret=SECRET, now=NOW)
            assert _written(everything) == self._comments_of(owned)
            for comment, author in self.written.items():
                assert _may_change(comment, account.author) == (author in owned)

    def _comments_of(self, authors: Iterable[str]) -> set[str]:
        return {comment for comment, author in self.written.items() if author in authors}


def _written(everything: personal_data.Everything) -> set[str]:
    return {writing.id for writing in everything.comments}


def _may_change(comment: str, author: str) -> bool:
    """Try to retract a comment, with a revision that stops every retraction after this check."""
    try:
        own_comment.retract(comment, author_id=author, revision=10**6, now=NOW, site="demo")
    except errors.Forbidden:
        return False
    except errors.RevisionMismatch:
        return True
    raise AssertionError(comment)


def _sign_in(address: str) -> accounts.Account:
    reader = reader_accounts.Reader(identities.of_address(address), "A reader")
    return reader_accounts.sign_in(reader, secret=SECRET, now=NOW + timedelta(seconds=1))


@pytest.mark.slow
@pytest.mark.embedded
@settings(max_examples=max(1, settings.default.max_examples // 2))
@given(
    steps=st.lists(
        st.builds(Step, st.sampled_from(KINDS), st.integers(0, 5), st.integers(0, 5)),
        min_size=10,
        max_size=40,
    )
)
def test_claims_and_links_equal_the_model(steps: list[Step]) -> None:
    with prepared_stores.opened(None) as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            prepared_stores.demo()
            model = Model()
            for step in steps:
                model.take(step)
            model.check()
            claims = [entry for entry in audit_log.log("demo", limit=200) if entry.verb == "claim"]
            assert len(claims) >= sum(map(bool, model.claims.values()))
