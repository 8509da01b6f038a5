"""After any history, inboxes contain the unread replies that readers see.

People reply, moderators hide replies and restore them, authors retract, readers mark replies as
read, and compactions run and crash. Events are delivered in any order, one by one or together, and
some again after they were delivered.
"""

import itertools
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.records import Verb
from comments.events import dispatcher
from comments.moderation import decisions
from comments.notifications import inbox
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection
from comments.store.large_sets import set_compaction
from comments.upkeep import wiring
from datastore_emulator import faults, inprocess
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

PEOPLE = ("ann", "bob", "cid")
_EXAMPLES = itertools.count()
_ANY = st.integers(0, 5)
STEPS = st.one_of(
    st.tuples(st.just("reply"), st.sampled_from(PEOPLE), _ANY),
    st.tuples(st.sampled_from(["hide", "restore", "retract"]), st.just(""), _ANY),
    st.tuples(st.sampled_from(["deliver", "repeat"]), st.just(""), _ANY),
    st.tuples(st.sampled_from(["mark_all", "compact"]), st.sampled_from(PEOPLE), _ANY),
    st.tuples(st.sampled_from(["mark_one", "mark_until"]), st.sampled_from(PEOPLE), _ANY),
)


class Reply:
    """A comment of the model. `answered` is None for the first comment."""

    def __init__(self, row: records.Comment, answered: "Reply | None") -> None:
        self.id, self.author, self.answered = row.id, row.author.id, answered
        self.state = "shown"  # Or "hidden" or "retracted"
        self.shown_by = ""  # The event that showed the reply last
        self.is_in = False  # Whether the inbox contains the reply, seen or not

    @property
    def reader(self) -> str:
        """The author of the answered comment, if an event can still find them."""
        answered = self.answered
        if answered is None or answered.state == "retracted" or answered.author == self.author:
            return ""
        return answered.author


class Model:
    """The oracle: it knows which reply each event showed last, and which replies were read."""

    def __init__(self, site: records.Site, engine: inprocess.Engine) -> None:
        self.site, self.engine = site, engine
        self.number = next(_EXAMPLES)
        self.minutes = itertools.count()
        self.events: dict[str, Reply] = {}
        self.delivered: list[str] = []
        self.said: list[Reply] = []
        self.reply("ann", 0)

    def _now(self) -> timedelta:
        return timedelta(days=self.number, minutes=next(self.minutes))

    def _note(self, reply: Reply) -> None:
        """Find the event of the last change."""
        for event in counter_oracle.events():
            if event not in self.events and event not in self.delivered:
                self.events[event] = reply
                reply.shown_by = event if reply.state == "shown" else reply.shown_by

    def reply(self, who: str, how: int) -> None:
        answered = self.said[how % len(self.said)] if self.said else None
        if answered is not None and answered.state != "shown":
            return
        author = records.Author(who, id=f"g:{who} {self.number}")
        now = sample_threads.START + self._now()
        parent = None if answered is None else answered.id
        row = sample_threads.post(
            self.site, f"{now}", parent, author=author, now=now, thread=f"t{self.number}"
        )
        self.said.append(Reply(row, answered))
        self._note(self.said[-1])

    def _decide(self, how: int, verb: Verb, before: str, after: str) -> None:
        one = self.said[how % len(self.said)]
        if one.state == before:
            now = sample_threads.START + self._now()
            decisions.decide("demo", one.id, verb, sample_threads.ADA, now=now)
            one.state = after
            self._note(one)

    def hide(self, _: str, how: int) -> None:
        self._decide(how, Verb.HIDE, "shown", "hidden")

    def restore(self, _: str, how: int) -> None:
        self._decide(how, Verb.RESTORE, "hidden", "shown")

    def retract(self, _: str, how: int) -> None:
        one = self.said[how % len(self.said)]
        if one.state != "retracted":
            now = sample_threads.START + self._now()
            own_comment.retract(one.id, author_id=one.author, revision=None, now=now)
            one.state = "retracted"
            self._note(one)

    def deliver(self, _: str, how: int) -> None:
        """Deliver all pending events, or only one of them."""
        waiting = list(self.events)
        self._deliver(waiting if how > 3 else waiting[how : how + 1])

    def repeat(self, _: str, how: int) -> None:
        self._deliver(self.delivered[how : how + 3])

    def _deliver(self, events: Sequence[str]) -> None:
        later = sample_threads.START + timedelta(days=10_000)
        done = dispatcher.deliver(events, now=later, handlers=wiring.HANDLERS)
        assert done.failed == 0
        for event in events:
            one = self.events.pop(event, None)
            if one is not None and one.reader:
                is_shown = one.state == "shown"
                if not is_shown or one.shown_by == event:
                    one.is_in = is_shown
            self.delivered += [event] if one is not None else []

    def _inbox(self, reader: str) -> list[Reply]:
        """The replies in a reader's inbox, newest first, including those that nobody sees."""
        answers = ((one, one.answered) for one in reversed(self.said) if one.is_in)
        return [one for one, answered in answers if answered and answered.author == reader]

    def _read(self, replies: Sequence[Reply]) -> int:
        for one in replies:
            one.is_in = False
        return len(replies)

    def mark_all(self, who: str, _: int) -> None:
        reader = f"g:{who} {self.number}"
        assert inbox.mark_all("demo", reader) == self._read(self._inbox(reader))

    def mark_one(self, who: str, how: int) -> None:
        reader, one = f"g:{who} {self.number}", self.said[how % len(self.said)]
        chosen = [one] if one in self._inbox(reader) else []
        assert inbox.mark_some("demo", reader, {one.id}) == self._read(chosen)

    def mark_until(self, who: str, how: int) -> None:
        reader, last = f"g:{who} {self.number}", how % len(self.said)
        chosen = [one for one in self._inbox(reader) if self.said.index(one) <= last]
        assert inbox.mark_until("demo", reader, self.said[last].id) == self._read(chosen)

    def compact(self, who: str, how: int) -> None:
        """Compact an inbox. The commit with the number `how` fails, if there are so many."""
        rule = {"rpc": "Commit", "call": how + 1, "status": "INVALID_ARGUMENT"}
        self.engine.install_faults(faults.Plan.parse({"rules": [rule]}))
        try:
            set_compaction.compact(inbox.set_of("demo", f"g:{who} {self.number}"), most=inbox.MOST)
        except errors.Overloaded:
            pass
        finally:
            self.engine.install_faults(None)

    def check(self) -> None:
        for who in PEOPLE:
            reader = f"g:{who} {self.number}"
            expected = self._inbox(reader)
            assert inbox.comments_in("demo", reader) == [one.id for one in expected]
            found = inbox.unread("demo", reader, limit=200, cursor=None, secret="s")
            seen = [one.id for one in expected if one.state == "shown"]
            assert [each.comment.id for each in found.replies] == seen
            assert found.unread == len(seen)


@given(st.lists(STEPS, min_size=5, max_size=25))
@settings(max_examples=15)
def test_an_inbox_contains_the_unread_replies_after_any_history(
    store: connection.Store,
    site: records.Site,
    engine: inprocess.Engine,
    steps: list[tuple[str, str, int]],
) -> None:
    model = Model(site_settings.change(site.id, options={"inbox": True}), engine)
    for verb, who, how in steps:
        getattr(model, verb)(who, how)
        model.check()
    model.deliver("", 5)
    model.check()
    assert counter_oracle.events() == []
