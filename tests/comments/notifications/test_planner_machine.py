"""After any history of changes, every subscriber gets each expected mail exactly once."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from comments.domain import records
from comments.notifications import subscriptions
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess
from tests.support.histories import counter_oracle
from tests.support.outside import mail_server
from tests.support.outside.mail_service import INDEXES, SITE, START, THREAD, MailService
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]
PEOPLE = ("ann", "bob", "cid")

STEPS = st.one_of(
    st.tuples(st.just("thread"), st.sampled_from(PEOPLE), st.booleans()),
    st.tuples(st.just("replies"), st.sampled_from(PEOPLE), st.booleans()),
    st.tuples(st.just("say"), st.sampled_from(PEOPLE), st.integers(-1, 3)),
    st.tuples(st.just("retract"), st.just(""), st.integers(0, 3)),
    st.tuples(st.just("deliver"), st.just(""), st.just(0)),
)


class Model:
    """The oracle for notifications: a model that knows each comment's expected recipients."""

    def __init__(self, mailer: MailService) -> None:
        self.mailer = mailer
        self.wants: set[tuple[str, str]] = set()
        # Each comment with its author and its parent's author.
        self.said: list[tuple[records.Comment, str, str]] = []
        self.gone: set[str] = set()
        self.untold: list[int] = []
        self.expected: list[tuple[str, str]] = []

    def step(self, verb: str, who: str, how: int) -> None:
        getattr(self, verb)(who, how)

    def thread(self, who: str, how: int) -> None:
        self._subscribe(who, "thread", is_wanted=bool(how))

    def replies(self, who: str, how: int) -> None:
        self._subscribe(who, "replies", is_wanted=bool(how))

    def _subscribe(self, who: str, kind: str, *, is_wanted: bool) -> None:
        email, author = f"{who}@example.org", f"g:{who}"
        name = subscriptions.name_of_thread(THREAD)
        if kind == "replies":
            name = subscriptions.name_of_replies("demo", author)
        if is_wanted:
            self.mailer.subscribe(email, author=author, replies=kind == "replies")
            self.wants.add((who, kind))
        else:
            subscriptions.unsubscribe(self.mailer.id_of(email), [name], now=self.mailer.now)
            self.wants.discard((who, kind))

    def say(self, who: str, how: int) -> None:
        standing = [each for each in self.said if each[0].id not in self.gone]
        parent = standing[how] if 0 <= how < len(standing) else None
        text = f"text {len(self.said)}"
        row = self.mailer.say(text, parent[0].id if parent else None, f"g:{who}")
        self.untold.append(len(self.said))
        self.said.append((row, who, parent[1] if parent else ""))

    def retract(self, _: str, how: int) -> None:
        if how < len(self.said):
            row, who, _answered = self.said[how]
            self.gone.add(row.id)
            own_comment.retract(row.id, author_id=f"g:{who}", revision=None, now=START)

    def deliver(self, _: str = "", __: int = 0) -> None:
        for number in self.untold:
            row, author, answered = self.said[number]
            parent_is_gone = row.reply_to in self.gone
            for who in PEOPLE:
                is_told = (who, "thread") in self.wants
                is_told |= (who, "replies") in self.wants and who == answered and not parent_is_gone
                if is_told and who != author and row.id not in self.gone:
                    self.expected.append((f"{who}@example.org", f"text {number}"))
        self.untold.clear()
        self.mailer.deliver()


# For the long run, set NOTICES_EXAMPLES=500.
@hypothesis_settings(max_examples=int(os.environ.get("NOTICES_EXAMPLES", "12")))
@given(steps=st.lists(STEPS, min_size=4, max_size=14))
def test_after_any_history_every_subscriber_got_each_wanted_mail_once(
    steps: list[tuple[str, str, int]],
) -> None:
    with (
        mail_server.serving() as box,
        inprocess.open_engine(
            None, indexes=INDEXES, concurrency="pessimistic", history=0
        ) as engine,
    ):
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            site_settings.add(
                "demo", SITE.origins, scheme=sample_threads.SETTINGS.scheme, now=START
            )
            model = Model(MailService(store, box.settings(), box))
            for step in steps:
                model.step(*step)
            model.deliver()
            told = [
                (address, re.search(r"^> (text \d+)$", box.text(number), re.MULTILINE)[1])
                for number, address in enumerate(box.recipients)
            ]
            assert sorted(told) == sorted(model.expected)
            counter_oracle.assert_all_counted()
