"""Choose the rate limit buckets that count a post.

A post is counted in two rows (`rate_limits.RateLimitJournal`). The first row is the network's row,
which also remembers proofs and texts. The second row is the author's row or, for a newcomer, the
text's row. If one of the site's rules uses `repeated`, the text's row also counts the posts of the
text within a day, and it is one of the two rows for every author. For guests, the other row is the
network's row, because anyone can get a guest id. For signed-in authors, the other row is the
author's row, because their accounts can be banned. The limit of the thread is counted with the
comments of the thread (`tree.counters`).
"""

import re
from datetime import timedelta
from typing import NamedTuple

from comments.domain import author_ids
from comments.domain.crypto import client_networks, keyed_hashes, proof_of_work
from comments.moderation import rules
from comments.sites import post_limits, proof_policy, rate_limits

WINDOW = timedelta(minutes=10)
DAY = timedelta(days=1)
KEEPS = timedelta(hours=1)
# The unit is characters. Shorter texts, such as "Thank you very much!", are often repeated in good
# faith.
SHORTEST_TEXT = 24
# The limit per site for posts that a form without JavaScript sends.
FORMS = rate_limits.Limit("forms", 20, timedelta(hours=1))

_BLANK = re.compile(r"\s+")


class Subject(NamedTuple):
    """The data of a post by which it is counted. `author` is empty for a newcomer."""

    site: str
    network: str
    author: str
    body: str


class PostBuckets:
    """The buckets of one post: its network's, its author's and its text's journal, and others.

    `around` contains the buckets of the wider networks around an IPv6 network, and of a site's
    forms. `text` is the digest of the text, or `rate_limits.NOTHING` if repeats are not limited.
    `limits_texts` is True if the text's row limits repeats, and False if it only counts them.

    Args:
        proof: the valid proof of work, which names the network that requested the challenge.
        once: the digest of the proof or Turnstile token; each is valid for one post only.
        counts: whether one of the site's rules uses the number of times that a text was posted.
        is_form: whether the post is from a form without JavaScript that needs a stricter limit.
    """

    def __init__(  # noqa: PLR0913 - a post, the limits, and the results of the earlier checks
        self,
        subject: Subject,
        guard: post_limits.PostLimits,
        secret: str,
        *,
        proof: proof_of_work.Proof | None,
        once: bytes,
        counts: bool,
        is_form: bool,
    ) -> None:
        self._subject, self._guard, self._secret = subject, guard, secret
        self._proof = proof
        is_member = subject.author.startswith(author_ids.ACCOUNT)
        is_known = bool(subject.author) and (is_member or not counts)
        self.text = rate_limits.NOTHING
        if guard.same_texts:
            self.text = _text_digest(subject.site, subject.body, secret)
        has_text = self.text != rate_limits.NOTHING
        self.limits_texts = has_text and not is_known
        self.network: rate_limits.RateLimitJournal | None = None
        self.author: rate_limits.RateLimitJournal | None = None
        self.texts: rate_limits.RateLimitJournal | None = None
        around: list[rate_limits.RateLimitBucket] = []
        if guard.posts_per_network or once != rate_limits.NOTHING or has_text:
            self.network, around = self._network(), self._wider_networks()
        if is_form:
            around.append(rate_limits.RateLimitBucket(FORMS, subject.site, secret))
        if is_known and (guard.posts_per_author or has_text):
            whose = f"{subject.site}/{subject.author}"
            self.author = self._journal("authors", guard.posts_per_author, whose)
        if counts or self.limits_texts:
            # Texts that rules treat as equal share a row; the marks in the row distinguish them.
            likeness = rules.likeness(subject.body)
            window = DAY if counts else WINDOW
            self.texts = self._journal("texts", 0, f"{subject.site}\0{likeness}", window)
        if self.author is not None and self.texts is not None:
            self.network, around = None, []
        found = (self.network, self.author, self.texts)
        self.journals = [journal for journal in found if journal is not None]
        self.around = around if self.journals else []

    @property
    def all(self) -> list[rate_limits.RateLimitBucket]:
        """Return all buckets, which the transaction must read."""
        return [*self.journals, *self.around]

    @property
    def line(self) -> str:
        """Return the row on which concurrent posts conflict; "" if the post is not counted."""
        return f"admission/{self.journals[0].key.id()}" if self.journals else ""

    def _network(self) -> rate_limits.RateLimitJournal:
        site, proof = self._subject.site, self._proof
        whose = (
            proof.network
            if proof
            else proof_policy.account(site, self._subject.network, self._secret)
        )
        return self._journal("posts", self._guard.posts_per_network, whose)

    def _wider_networks(self) -> list[rate_limits.RateLimitBucket]:
        most, secret = self._guard.posts_per_network, self._secret
        if not most:
            return []
        limit = rate_limits.Limit("posts", most, WINDOW)
        around = (
            self._proof.around
            if self._proof
            else proof_policy.accounts_around(self._subject.site, self._subject.network, secret)
        )
        return [
            rate_limits.RateLimitBucket(limit.wider(factor), name, secret)
            for (_, factor), name in zip(client_networks.WIDER, around, strict=False)
        ]

    def _journal(
        self, purpose: str, most: int, subject: str, window: timedelta = WINDOW
    ) -> rate_limits.RateLimitJournal:
        # Without a limit, the journal only remembers posts.
        limit = rate_limits.Limit(purpose, most or rate_limits.UNLIMITED, window, KEEPS)
        return rate_limits.RateLimitJournal(limit, subject, self._secret)


def _text_digest(site: str, body: str, secret: str) -> bytes:
    """Return a digest of a text, ignoring spacing and case, or `NOTHING` for a short text."""
    plain = _BLANK.sub(" ", body).strip().casefold()
    if len(plain) < SHORTEST_TEXT:
        return rate_limits.NOTHING
    return keyed_hashes.keyed(secret, "text", site, plain)[:8]
