"""Admission: who may post now. What keeps a bot out before a comment is anything at all.

Owns the order of what is asked of a post, and the one transaction before it, which counts it. A
refusal stores nothing. Nothing here knows what a text says: that is for rules.

1. A field that only a bot fills in (the honeypot).
2. A proof of work: of this site, in time, not of a form that was opened a moment ago, and used
   once. It goes on the account of the network that asked for it, wherever it is sent from:
   telephones change networks while people write, and a bot has no more networks than it has. Who
   has signed in needs none: his posts are counted, and his account can be banned.
3. A token of Turnstile, where the site asks for one: Cloudflare is asked whether it is good, within
   a short time. Who cannot be asked has not refused: the post is held, or refused for now, as the
   site says.
4. How often its network posts on the site; how often its author, where we know him; the same text
   again, from one network, or as a newcomer's from several.

The transaction reads and writes two rows (`rate_limits.Journal`): the network's, which remembers
the proofs and texts too, and the author's, or for a newcomer that of the text. Where a rule asks
how often a text came today (`repeated`), the text's row counts that too and is one of the two for
everybody: a guest is then counted as a newcomer, as his id is anybody's for the asking, and of who
has signed in the network is not asked, as his account can be banned. How often a thread is posted
to is counted where the thread's numbers are, by the post itself (`tallies`).

What must stay true:

- A repeat under an idempotency key of what was admitted is admitted again, free of charge: both
  rows remember it, and who would be refused is asked for in the store first.
- Of posts that come at once exactly as many are admitted as may be: the store says who was first.
- A store that does not answer within `PATIENCE` seconds admits nobody: 503, and nothing is stored.
  To post without limits would help nobody, as the post needs the same store.
"""

import hashlib
import logging
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from comments import errors
from comments.domain import author_ids, records
from comments.domain.crypto import client_networks, encryption, keyed_hashes, proof_of_work
from comments.moderation import rules, screening
from comments.posting import turnstile
from comments.sites import budgets, post_limits, proof_policy, rate_limits
from comments.sites.site_request import SiteRequest
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows

_log = logging.getLogger("flatthread")

WINDOW = timedelta(minutes=10)
DAY = timedelta(days=1)
KEEPS = timedelta(hours=1)
TURNSTILE = "turnstile"  # the purpose under which its secret is sealed
PATIENCE = 5.0
# Characters. Shorter texts are said again and again by people: "Thank you very much!"
SHORTEST_TEXT = 24
_AGAIN = 60  # seconds
_REFUSED = "turnstile-refused"
_UNASKED = "Turnstile could not be asked"
_BLANK = re.compile(r"\s+")


class Entrant(NamedTuple):
    """A post that wants to be stored: the id it will have, its text, and what came along.

    The author's id in `text` is empty for somebody who is not known yet. `repeats` says that the
    post has an idempotency key, so that it may be a repeat. `counts` says that a rule of the site
    asks how often a text came.
    """

    post: str
    text: screening.Text
    proof: str = ""
    turnstile: str = ""
    trap: str = ""
    repeats: bool = False
    counts: bool = False


class Admitted(NamedTuple):
    """What the door found out about a post.

    `repeats` is how often its text came to the site within a day, this time included, where a rule
    of the site asks; else 0, and for a repeat. With a `doubt` it is held, and this is why.
    """

    repeats: int = 0
    doubt: str = ""


def challenge(request: SiteRequest) -> proof_of_work.Challenge:
    """Make a challenge for a post, with the site's key of Turnstile where it asks that too."""
    made = proof_policy.challenge(request, proof_policy.Purpose.POST)
    key = "" if request.site.turnstile is None else request.site.turnstile.key
    return msgspec.structs.replace(made, turnstile=key)


def admit(entrant: Entrant, request: SiteRequest, guard: post_limits.Guard) -> Admitted:
    """Count a post that is about to be stored on a website; what is to be known when it is stored.

    Raises:
        errors.Forbidden: it is a bot's, or its proof of work is missing, wrong, too old or used.
        errors.Conflict: the same text was posted a while ago.
        errors.TooMany: there were too many, the form was sent too fast, or the site's budget of
            the day is spent and it is to be read only.
        errors.Unchecked: Turnstile could not be asked, and the site takes nothing then.
        errors.Overloaded: the store did not answer in time.
    """
    if entrant.trap:
        raise errors.Forbidden("this comment was not accepted", code="not-accepted")
    try:
        if request.site.budget != records.NO_BUDGET:
            budgets.check(request.site, now=request.now)
            guard = budgets.guarded(request.site, guard, now=request.now)
        return _Check(entrant, request, guard).admit()
    except (errors.Forbidden, errors.Conflict, errors.TooMany, errors.Unchecked):
        if not (entrant.repeats and reads.get(comment_rows.comment_key(entrant.post))):
            raise
        return Admitted()


class _Check:
    """One post at the door: what it is counted in, and whether it may pass."""

    def __init__(self, entrant: Entrant, request: SiteRequest, guard: post_limits.Guard) -> None:
        self._entrant, self._request, self._guard = entrant, request, guard
        self._now, self._secret = request.now, request.settings.secret
        self._author_id, body = entrant.text.author.id, entrant.text.body
        self._is_member = self._author_id.startswith(author_ids.ACCOUNT)
        self._what = hashlib.sha256(entrant.post.encode()).digest()[:8]
        self._counts, self._doubt = entrant.counts, ""
        self._is_known = bool(self._author_id) and (self._is_member or not self._counts)
        self._text = rate_limits.NOTHING
        if guard.same_texts:
            self._text = _text_digest(request.site.id, body, self._secret)
        self._proof: proof_of_work.Proof | None = None
        # Kept until it is known that this is no repeat: one that comes late is as good as in time.
        self._problem: errors.FlatthreadError | None = None
        if guard.proof_of_work and not self._is_member:
            try:
                self._proof = _proof(entrant.proof, request, guard)
            except (errors.Forbidden, errors.TooMany) as error:
                self._problem = error
        # What is good for one post: its digest.
        self._once = self._proof.digest if self._proof else rate_limits.NOTHING
        self._network: rate_limits.Journal | None = None
        self._around: tuple[rate_limits.Bucket, ...] = ()  # an IPv6 network's wider ones
        self._author: rate_limits.Journal | None = None
        self._texts: rate_limits.Journal | None = None

    def _choose(self) -> None:
        site, secret = self._request.site.id, self._secret
        network = self._request.sender.network
        has_text = self._text != rate_limits.NOTHING
        if self._guard.posts_per_network or self._once != rate_limits.NOTHING or has_text:
            proof = self._proof
            most = self._guard.posts_per_network
            whose = proof.network if proof else proof_policy.account(site, network, secret)
            self._network = self._journal("posts", most, whose)
            if most:
                limit = rate_limits.Limit("posts", most, WINDOW)
                around = (
                    proof.around if proof else proof_policy.accounts_around(site, network, secret)
                )
                self._around = tuple(
                    rate_limits.Bucket(limit.wider(factor), name, secret)
                    for (_, factor), name in zip(client_networks.WIDER, around, strict=False)
                )
        if self._is_known and (self._guard.posts_per_author or has_text):
            whose = f"{site}/{self._author_id}"
            self._author = self._journal("authors", self._guard.posts_per_author, whose)
        if self._counts or (has_text and not self._is_known):
            # All that rules take for one text are one row, and the marks there tell the rest apart.
            window = DAY if self._counts else WINDOW
            likeness = rules.likeness(self._entrant.text.body)
            self._texts = self._journal("texts", 0, f"{site}\0{likeness}", window)
        if self._author is not None and self._texts is not None:
            self._network, self._around = None, ()

    def _journal(
        self, purpose: str, most: int, subject: str, window: timedelta = WINDOW
    ) -> rate_limits.Journal:
        # Without a limit it remembers, and counts for nothing.
        limit = rate_limits.Limit(purpose, most or rate_limits.UNLIMITED, window, KEEPS)
        return rate_limits.Journal(limit, subject, self._secret)

    def admit(self) -> Admitted:
        """Count it, or raise. Turnstile is asked last, and before the transaction."""
        if self._request.site.turnstile is not None:
            self._ask_turnstile(self._request.site.turnstile)
        self._choose()
        return Admitted(self._counted(), self._doubt)

    def _ask_turnstile(self, asked: records.Turnstile) -> None:
        if self._is_member or self._problem is not None:
            return
        token = self._entrant.turnstile
        try:
            answer = _turnstile(asked, self._request, self._entrant.post, token)
        except errors.Forbidden as error:
            self._problem = error
            return
        if self._proof is None:
            self._once = turnstile.digest(token)
        if answer is turnstile.Answer.UNKNOWN:
            _log.warning("Turnstile could not be asked for %s", self._request.site.id)
            self._doubt = _UNASKED
            if asked.refuses:
                self._problem = errors.Unchecked(
                    f"{_UNASKED} about your browser; try again in a minute",
                    retry_after=_AGAIN,
                    code="turnstile-unavailable",
                )

    def _counted(self) -> int:
        """How often its text came today, where somebody asks."""
        found = (self._network, self._author, self._texts)
        journals = [journal for journal in found if journal is not None]
        if not journals:
            self._raise_problem()
            return 0
        # Those of one network meet at its row: within a process they take turns.
        line = f"admission/{journals[0].key.id()}"
        with connection.within(PATIENCE):
            return transactions.transaction(lambda: self._count(journals), line=line)

    def _count(self, journals: Sequence[rate_limits.Journal]) -> int:
        rate_limits.read(*journals, *self._around, now=self._now)
        if any(journal.knows(self._what) for journal in journals):
            return 0
        self._raise_problem()
        self._refuse()
        mark = rate_limits.Mark(int(self._now.timestamp()), self._what, self._text, self._once)
        # Of a text that is only counted nothing has to be remembered for long.
        counted = rate_limits.Mark(mark.at, mark.what)
        is_counted = self._is_known or self._text == rate_limits.NOTHING
        transactions.apply(
            *(
                journal.note(counted if journal is self._texts and is_counted else mark)
                for journal in journals
            ),
            *(bucket.take() for bucket in self._around),
        )
        return self._texts.count if self._counts and self._texts is not None else 0

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _refuse(self) -> None:
        """Raise if there were too many, or the like of it."""
        if self._network is not None and self._network.is_spent(self._once):
            if self._proof is None:
                raise errors.Forbidden("the token was used before", code=_REFUSED)
            raise errors.Forbidden("the proof of work was used before", code="proof-spent")
        for journal, whose in ((self._network, "your network"), (self._author, "you")):
            if journal is not None:
                self._refuse_more(journal, whose)
        for bucket in self._around:
            self._refuse_full(bucket, "your network")
        if self._texts is None or self._is_known or self._text == rate_limits.NOTHING:
            return
        if self._texts.times(self._text) >= self._guard.same_texts:
            raise errors.Conflict("this was posted a few times a while ago", code="duplicate")

    def _refuse_full(self, bucket: rate_limits.Bucket, whose: str) -> None:
        if bucket.is_empty:
            wait = bucket.wait(self._now)
            raise errors.TooMany(
                f"too many comments from {whose}; try again in {_spoken(wait)}",
                retry_after=wait,
                code="too-many-posts",
            )

    def _refuse_more(self, journal: rate_limits.Journal, whose: str) -> None:
        self._refuse_full(journal, whose)
        if journal.times(self._text):
            raise errors.Conflict("this was posted a while ago", code="duplicate")


def _proof(solution: str, request: SiteRequest, guard: post_limits.Guard) -> proof_of_work.Proof:
    """What was proved with a post; raises where it does not do."""
    purpose, now = proof_policy.Purpose.POST, request.now
    secret = request.settings.secret
    proof = proof_policy.check(solution, request.site.id, purpose, secret=secret, now=now)
    left = guard.form_seconds - (now - proof.opened).total_seconds()
    if left > 0:
        raise errors.TooMany(
            "this form was sent too fast", retry_after=max(1, round(left)), code="too-fast"
        )
    return proof


def _turnstile(
    asked: records.Turnstile, request: SiteRequest, post: str, token: str
) -> turnstile.Answer:
    """What Turnstile says of a browser that it does not refuse.

    Raises:
        errors.Forbidden: there is no token, or it is not good for this site.
    """
    site = request.site
    if not token:
        raise errors.Forbidden("posting takes a token of Turnstile", code="turnstile-required")
    try:
        shared = encryption.unseal(
            asked.secret, TURNSTILE, request.settings.secret, now=request.now
        )
    except errors.BadLink:
        _log.error("the secret for Turnstile of %s cannot be read: set it again", site.id)
        return turnstile.Answer.UNKNOWN
    hosts = {urlsplit(origin).hostname or "" for origin in site.origins}
    where = turnstile.Account(asked.url or turnstile.ADDRESS, shared, hosts)
    client = turnstile.OUTBOUND.get()
    answer = turnstile.verify(client, where, token, post)
    if answer is turnstile.Answer.NO:
        raise errors.Forbidden("Turnstile does not vouch for this browser", code=_REFUSED)
    return answer


def _text_digest(site: str, body: str, secret: str) -> bytes:
    """What two texts have in common that differ in blanks and capitals; nothing for short ones."""
    plain = _BLANK.sub(" ", body).strip().casefold()
    if len(plain) < SHORTEST_TEXT:
        return rate_limits.NOTHING
    return keyed_hashes.keyed(secret, "text", site, plain)[:8]


def _spoken(seconds: int) -> str:
    return f"{seconds} s" if seconds < 60 else f"{-(-seconds // 60)} min"  # noqa: PLR2004
