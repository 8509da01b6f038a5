"""Take people's steps and imports in the product, and record them in a ledger.

This module owns the conversion of a wish into a step: who does what to which comment. A wish's
numbers pick from the ledger's contents, so equal wishes always make the same history.
"""

import contextlib
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta

from comments.domain import records
from comments.limits.site_request import SiteRequest
from comments.moderation import decisions
from comments.notifications import reader_follows
from comments.posting import admission, cast_vote, new_comment, own_comment
from comments.store import connection, transactions
from comments.store.models import comment_rows
from comments.tree import values
from comments.tree.bulk import bulk_append
from comments.tree.counters import sharding
from tests.support import stored_state
from tests.support.histories import ledger
from tests.support.histories.operator_steps import (
    NAMES,
    SETTINGS,
    OperatorSteps,
    Step,
    Wish,
    key_of,
    name_of,
)
from tests.support.threads import sample_threads

AUTHORS = ["g:ann", "g:bob", "g:cat"]
HELD = ledger.HELD
MODERATOR = records.Actor("cli", "the command line")
VERBS = [verb for verb in records.Verb for _ in range(1 + (verb == "approve"))]
VOTERS = ["g:ann", "g:dan", "g:eve"]
SKEW = [timedelta(0), timedelta(minutes=10), timedelta(minutes=-10)]
# Frequent actions are listed several times.
KINDS = [
    "post", "post", "post", "post_again", "edit", "retract", "retract", "place", "place_again",
    "follow", "follow", "deliver", "deliver", "deliver", "deliver", "sweep", "revive",
    "compact_thread", "clear", "compact_list", "spread", "gather", "settle", "recount", "repair",
    "complete", "complete",
    "vote", "vote", "vote", "count", "count", "expire", "file", "walk", "judge", "judge", "judge",
]  # fmt: skip


class ReaderSteps(OperatorSteps):
    """The steps of people and tasks, and the state that the steps need."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count()
        self._drafts: list[ledger.Draft] = []
        self._imports: list[list[ledger.Draft]] = []

    def step(self, wish: Wish) -> Step:
        """Turn a wish into a step that fits the present state."""
        make: Callable[[int, int, int], Step] = getattr(self, f"_{wish.kind}")
        return make(*wish[1:])

    def _post(self, one: int, two: int, three: int) -> Step:
        thread = key_of(NAMES[one % 3])
        reply_to = self._pick(two, thread) if one % 4 else None
        key = f"{next(self._numbers):016}"
        body = f"{HELD} {three}" if three % 5 == 4 else f"body {three}"
        draft = ledger.Draft(key, thread, reply_to, AUTHORS[three % 3], body)
        self._drafts.append(draft)
        return self._posted(draft, writers=two % 4, now=self.now + SKEW[three % 3])

    def _post_again(self, one: int, two: int, three: int) -> Step:
        if not self._drafts:
            return Step(lambda: None)
        draft = self._drafts[one % len(self._drafts)]
        if two % 4 == 0:
            draft = draft._replace(body="another")
        return self._posted(draft, writers=0, now=self.now + SKEW[three % 3])

    def _posted(self, draft: ledger.Draft, *, writers: int, now: datetime) -> Step:
        made: list[str] = []

        def act() -> None:
            name = name_of(draft.thread)
            known = sharding.SHARDS.of(connection.current(), self.shards)
            # Simulate other running posts, so that a different shard counts this post.
            turns = [sharding.TransactionShard(known, name) for _ in range(writers)]
            with contextlib.ExitStack() as stack:
                for turn in turns:
                    turn.take()
                    stack.callback(turn.end)
                scheme = SETTINGS.scheme
                site = records.Site(name.site, (), scheme.digits, scheme.width, scheme.levels)
                author = records.Author("somebody", id=draft.author)
                posted = new_comment.post(
                    admission.Submission(
                        name.id, draft.reply_to, author, draft.body, key=draft.key
                    ),
                    SiteRequest(site, SETTINGS, now),
                )
                made.append(posted.comment.id)

        def note(book: ledger.Ledger) -> str:
            known = book.keys.get(draft.key)
            if made and known is not None and known[0] != made[0]:
                return "another comment"
            fresh = made or sorted(stored_state.said().keys() - book.said.keys())
            return book.post(draft, fresh[0] if fresh else "", now)

        return Step(act, note, lambda: bool(stored_state.said().keys() - self.ledger.said.keys()))

    def _edit(self, one: int, two: int, three: int) -> Step:
        comment_id = self._pick(one)
        if comment_id is None:
            return Step(lambda: None)
        author, body = self._who(comment_id, two), f"edited {three % 3}"
        body = HELD if three % 7 == 6 else body
        now = self.now + SKEW[three % 3]

        def act() -> None:
            own_comment.edit(
                comment_id,
                author_id=author,
                body=body,
                revision=None,
                settings=SETTINGS,
                now=now,
            )

        return Step(
            act,
            lambda book: book.edit(comment_id, author, body, now),
            lambda: self._has_moved(comment_id),
        )

    def _retract(self, one: int, two: int, three: int) -> Step:
        comment_id = self._pick(one)
        if comment_id is None:
            return Step(lambda: None)
        author, now = self._who(comment_id, two), self.now + SKEW[three % 3]
        return Step(
            lambda: own_comment.retract(comment_id, author_id=author, revision=None, now=now),
            lambda book: book.retract(comment_id, author),
            lambda: self._has_moved(comment_id),
        )

    def _judge(self, one: int, two: int, three: int) -> Step:
        comment_id = self._pick(one)
        if comment_id is None:
            return Step(lambda: None)
        verb, now = VERBS[two % len(VERBS)], self.now + SKEW[three % 3]
        site = self.ledger.said[comment_id].site
        return Step(
            lambda: decisions.decide(site, comment_id, verb, MODERATOR, now=now),
            lambda book: book.judge(comment_id, verb.value),
            lambda: self._has_moved(comment_id),
        )

    def _follow(self, one: int, two: int, three: int) -> Step:
        name, follower = NAMES[one % 3], f"follower {two % 9}"
        now = self.now

        def act() -> None:
            if three % 3:
                reader_follows.follow(name, follower, now=now)
            else:
                reader_follows.unfollow(name, follower, now=now)

        return Step(
            act,
            lambda book: book.follow(key_of(name), f"~{follower}", follows=bool(three % 3)),
            lambda: reader_follows.is_following(name, follower) == bool(three % 3),
        )

    def _vote(self, one: int, two: int, three: int) -> Step:
        comment_id = self._pick(one)
        if comment_id is None:
            return Step(lambda: None)
        voter, value, now = VOTERS[two % 3], three % 3 - 1, self.now
        key = (comment_id, voter)
        request = sample_threads.request(
            self.ledger.said[comment_id].site,
            settings=SETTINGS,
            now=now,
            network=f"network of {voter}",
        )
        return Step(
            lambda: cast_vote.vote(comment_id, voter, value, request),
            lambda book: book.vote(comment_id, voter, value),
            lambda: stored_state.votes().get(key) != self.ledger.votes.get(key),
        )

    def _who(self, comment_id: str, number: int) -> str:
        """Return the comment's author or, in one of four cases, any author."""
        return AUTHORS[number % 3] if number % 4 == 0 else self.ledger.said[comment_id].author

    # Imports.

    def _place(self, one: int, two: int, three: int) -> Step:
        thread = key_of(NAMES[one % 3])
        above = self._pick(two, thread) if three % 3 else None
        statuses = list(records.Status)
        batch: list[ledger.Draft] = []
        for number in range(1 + one % 3):
            comment_id = comment_rows.comment_id(f"{next(self._numbers):016}".encode())
            status = statuses[(two + number * three) % len(statuses)].value
            author = [*AUTHORS, ""][(three + number) % 4]
            votes = (two % 4, one % 3)
            batch.append(
                ledger.Draft(comment_id, thread, above, author, "imported", status, *votes)
            )
            above = comment_id
        self._imports.append(batch)
        return self._placed(batch)

    def _place_again(self, one: int, _two: int, three: int) -> Step:
        """Repeat an import that was interrupted, or an import of a file that has grown."""
        if not self._imports:
            return Step(lambda: None)
        batch = self._imports[one % len(self._imports)]
        if three % 2:
            comment_id = comment_rows.comment_id(f"{next(self._numbers):016}".encode())
            batch.append(
                ledger.Draft(comment_id, batch[0].thread, batch[-1].key, "g:ann", "imported")
            )
        return self._placed(list(batch))

    def _placed(self, batch: list[ledger.Draft]) -> Step:
        now = self.now
        nodes = [
            records.ImportedComment(
                id=draft.key,
                reply_to=draft.reply_to,
                author=records.Author("somebody", id=draft.author),
                body=draft.body,
                html="",
                renderer="",
                status=records.Status(draft.status),
                created=now,
                source=f"disqus:{draft.key}",
                up=draft.up,
                down=draft.down,
            )
            for draft in batch
        ]

        def body() -> None:
            imported = bulk_append.append_imported(
                SETTINGS.scheme,
                [values.ImportedThread(name_of(batch[0].thread), nodes)],
                now=now,
            )
            transactions.apply(*imported.writes)

        return Step(
            lambda: transactions.transaction(body),
            lambda book: book.place(batch, now),
            lambda: {draft.key for draft in batch} <= stored_state.said().keys(),
        )
