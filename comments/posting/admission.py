"""Admit or refuse a post before it is stored, to keep bots out.

Owns the order of the checks, and the transaction that counts the post before it is stored. No part
of a refused post is stored. These checks do not judge the text; the site's rules do that. The
checks are:

1. The honeypot, a field that only bots fill in, and the site's options about guests and authors'
   websites.
2. A proof of work. The proof must be made for this site and must not have expired. A proof is valid
   for one post, and is refused if the form was opened only a moment ago. The post counts against
   the network that requested the challenge, even if the post is sent from a different network:
   phones switch networks while people write, and bots gain nothing by switching. Signed-in authors
   need no proof, because their posts are counted per author and their accounts can be banned.
3. A Turnstile token, if the site requires one. Cloudflare verifies the token within a short time
   limit. If Cloudflare cannot be reached, the site's settings decide whether the post is held or is
   refused with a request to try again.
4. Rate limits: posts per network and site, posts per known author, and repeats of a text by one
   network, by one author, or by newcomers from several networks.

A form without JavaScript cannot send the proofs of 2 and 3. On a site that requires one, its posts
are held for a moderator instead, and the limits per network are stricter (`FORM_POSTS`). A limit
for the site (`FORMS`), in a third row, protects moderators from a flood.

The transaction reads and writes two rows (`rate_limits.RateLimitJournal`). The first row is the
network's row, which also remembers proofs and texts. The second row is the author's row or, for a
newcomer, the text's row. If one of the site's rules uses `repeated`, the text's row also counts the
posts of the text within a day, and it is one of the two rows for every author. For guests, the
other row is the network's row, because anyone can get a guest id. For signed-in authors, the other
row is the author's row, because their accounts can be banned. The transaction that stores the post
also counts the post for its thread (`tree.counters`).

Invariants:

1. A retry of an admitted post with the same idempotency key is admitted and not counted again. Both
   rows remember the post, and before a retry is refused, the store is searched for the post's
   comment.
2. If posts are concurrent, exactly the allowed number is admitted, because the store serializes
   their transactions.
3. If the store does not answer within `PATIENCE` seconds, the post fails with 503 and nothing is
   stored. Skipping the limits would not help, because the comment must be stored in the same store.
"""

import dataclasses
import hashlib
import logging
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from comments import errors
from comments.domain import author_ids, reasons, records
from comments.domain.crypto import client_networks, encryption, keyed_hashes, proof_of_work
from comments.domain.records import Ruling, Status
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
TURNSTILE = "turnstile"  # Encryption purpose of a site's Turnstile secret.
PATIENCE = 5.0  # Seconds.
# The unit is characters. Shorter texts, such as "Thank you very much!", are often repeated in good
# faith.
SHORTEST_TEXT = 24
_AGAIN = 60  # seconds
# The limits for posts that a form without JavaScript sends, so without proofs: per network (and
# `WINDOW`), and per site. Each of these posts waits for a moderator.
FORM_POSTS = 3
FORMS = rate_limits.Limit("forms", 20, timedelta(hours=1))

_SILENT = (reasons.HoldReason("turnstile"),)
_PLAIN = (reasons.HoldReason("form"),)
_UNASKED = Ruling(Status.PENDING, TURNSTILE, reasons.sentence(_SILENT), _SILENT)
_UNPROVEN = Ruling(Status.PENDING, "form", reasons.sentence(_PLAIN), _PLAIN)
_BLANK = re.compile(r"\s+")


class Entrant(NamedTuple):
    """A post before admission: the id of its future comment, its text and its proofs.

    The author's id in `text` is empty for a newcomer. `repeats` is True if the post has an
    idempotency key and may therefore be a retry. `counts` is True if one of the site's rules uses
    the number of times that a text was posted. `is_plain` is True if a form without JavaScript
    sent the post, so that it has no proofs.
    """

    post: str
    text: screening.ScreenedText
    proof: str = ""
    turnstile: str = ""
    trap: str = ""
    repeats: bool = False
    counts: bool = False
    is_plain: bool = False


class Admitted(NamedTuple):
    """The result of admission.

    `repeats` is the number of times that the text was posted on the site within a day, including
    this post. The number is 0 for a retry, and if none of the site's rules uses it. `doubt` is the
    ruling for a post that would otherwise be approved, if admission has a reason to hold it.
    """

    repeats: int = 0
    doubt: Ruling | None = None


def challenge(request: SiteRequest) -> proof_of_work.Challenge:
    """Make a challenge for a post, with the Turnstile site key if the site has one."""
    made = proof_policy.challenge(request, proof_policy.ChallengePurpose.POST)
    key = "" if request.site.turnstile is None else request.site.turnstile.key
    return msgspec.structs.replace(made, turnstile=key)


def holds_forms(site: records.Site, guard: post_limits.PostLimits) -> bool:
    """Tell whether posts from forms without JavaScript are held, and limited more strictly.

    On a site that requires no proofs, such a form gives a bot nothing that the API does not give.
    """
    return bool(guard.proof_of_work) or site.turnstile is not None


def admit(entrant: Entrant, request: SiteRequest, guard: post_limits.PostLimits) -> Admitted:
    """Check and count a post that is about to be stored.

    Raises:
        errors.BadInput: the post has a website, and the site's options allow none.
        errors.Forbidden: the honeypot was filled in, the proof of work is missing, wrong, expired
            or used, or the author is a guest and the site's options allow none.
        errors.Conflict: the same text was posted recently.
        errors.TooMany: a rate limit is reached, the form was sent too soon after it was opened, or
            the site is read-only because its daily budget is spent.
        errors.Unchecked: Turnstile did not answer, and the site's settings refuse such posts.
        errors.Overloaded: the store did not answer in time.
    """
    if entrant.trap:
        raise errors.Forbidden("not-accepted")
    try:
        _check_options(entrant.text.author, request.site)
        if request.site.budget != records.NO_BUDGET:
            budgets.check(request.site, now=request.now)
            guard = budgets.guarded(request.site, guard, now=request.now)
        return _Check(entrant, request, guard).admit()
    except (errors.BadInput, errors.Forbidden, errors.Conflict, errors.TooMany, errors.Unchecked):
        if not (entrant.repeats and reads.get(comment_rows.comment_key(entrant.post))):
            raise
        return Admitted()


def _check_options(author: records.Author, site: records.Site) -> None:
    if not (site.options.guests or author.id.startswith(author_ids.ACCOUNT)):
        raise errors.Forbidden("guests-off")
    if author.website and not site.options.website:
        raise errors.BadInput("website", "website-off")


class _Check:
    """The check of one post: it chooses the rows that count the post, and admits or refuses it."""

    def __init__(
        self, entrant: Entrant, request: SiteRequest, guard: post_limits.PostLimits
    ) -> None:
        self._is_unproven = entrant.is_plain and holds_forms(request.site, guard)
        self._doubt = _UNPROVEN if self._is_unproven else None
        if self._is_unproven:
            most = min(guard.posts_per_network or FORM_POSTS, FORM_POSTS)
            guard = dataclasses.replace(guard, proof_of_work=0, posts_per_network=most)
        self._entrant, self._request, self._guard = entrant, request, guard
        self._now, self._secret = request.now, request.settings.secret
        self._author_id, body = entrant.text.author.id, entrant.text.body
        self._is_member = self._author_id.startswith(author_ids.ACCOUNT)
        self._what = hashlib.sha256(entrant.post.encode()).digest()[:8]
        self._counts = entrant.counts
        self._is_known = bool(self._author_id) and (self._is_member or not self._counts)
        self._text = rate_limits.NOTHING
        if guard.same_texts:
            self._text = _text_digest(request.site.id, body, self._secret)
        self._proof: proof_of_work.Proof | None = None
        # This error is raised only after the rows show that the post is not a retry, because a
        # retry is admitted even if its proof has expired.
        self._problem: errors.FlatthreadError | None = None
        if guard.proof_of_work and not self._is_member:
            try:
                self._proof = _proof(entrant.proof, request, guard)
            except (errors.Forbidden, errors.TooMany) as error:
                self._problem = error
        # The digest of the proof or token. A proof or token is valid for one post only.
        self._once = self._proof.digest if self._proof else rate_limits.NOTHING
        self._network: rate_limits.RateLimitJournal | None = None
        # The buckets of the wider networks around an IPv6 network, and of a site's forms.
        self._around: tuple[rate_limits.RateLimitBucket, ...] = ()
        self._author: rate_limits.RateLimitJournal | None = None
        self._texts: rate_limits.RateLimitJournal | None = None

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
                    rate_limits.RateLimitBucket(limit.wider(factor), name, secret)
                    for (_, factor), name in zip(client_networks.WIDER, around, strict=False)
                )
        if self._is_unproven:
            self._around += (rate_limits.RateLimitBucket(FORMS, site, secret),)
        if self._is_known and (self._guard.posts_per_author or has_text):
            whose = f"{site}/{self._author_id}"
            self._author = self._journal("authors", self._guard.posts_per_author, whose)
        if self._counts or (has_text and not self._is_known):
            # Texts that rules treat as equal share a row; the marks in the row distinguish them.
            window = DAY if self._counts else WINDOW
            likeness = rules.likeness(self._entrant.text.body)
            self._texts = self._journal("texts", 0, f"{site}\0{likeness}", window)
        if self._author is not None and self._texts is not None:
            self._network, self._around = None, ()

    def _journal(
        self, purpose: str, most: int, subject: str, window: timedelta = WINDOW
    ) -> rate_limits.RateLimitJournal:
        # Without a limit, the journal only remembers posts.
        limit = rate_limits.Limit(purpose, most or rate_limits.UNLIMITED, window, KEEPS)
        return rate_limits.RateLimitJournal(limit, subject, self._secret)

    def admit(self) -> Admitted:
        """Count the post, or raise an error.

        The Turnstile token is verified after the proof and before the transaction.
        """
        if self._request.site.turnstile is not None and not self._is_unproven:
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
        if answer is turnstile.TurnstileAnswer.UNKNOWN:
            _log.warning("Turnstile did not answer for site %s", self._request.site.id)
            self._doubt = _UNASKED
            if asked.refuses:
                self._problem = errors.Unchecked("turnstile-unavailable", retry_after=_AGAIN)

    def _counted(self) -> int:
        """Count the post.

        Return the number of times that its text was posted within a day, or 0 if no rule uses the
        number.
        """
        found = (self._network, self._author, self._texts)
        journals = [journal for journal in found if journal is not None]
        if not journals:
            self._raise_problem()
            return 0
        # Posts from one network conflict on the network's row, so they take turns within the
        # process.
        line = f"admission/{journals[0].key.id()}"
        with connection.within(PATIENCE):
            return transactions.transaction(lambda: self._count(journals), line=line)

    def _count(self, journals: Sequence[rate_limits.RateLimitJournal]) -> int:
        rate_limits.read(*journals, *self._around, now=self._now)
        if any(journal.knows(self._what) for journal in journals):
            return 0
        self._raise_problem()
        self._refuse()
        mark = rate_limits.CountedItem(
            int(self._now.timestamp()), self._what, self._text, self._once
        )
        # If the text's row is only a counter, its mark omits the digests, because marks with a
        # proof are kept for longer.
        counted = rate_limits.CountedItem(mark.at, mark.what)
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
        """Raise an error if a limit is reached, or if the proof or text has been used before."""
        if self._network is not None and self._network.is_spent(self._once):
            if self._proof is None:
                raise errors.Forbidden("turnstile-refused")
            raise errors.Forbidden("proof-spent")
        for journal in (self._network, self._author):
            if journal is not None:
                self._refuse_more(journal)
        for bucket in self._around:
            self._refuse_full(bucket)
        if self._texts is None or self._is_known or self._text == rate_limits.NOTHING:
            return
        if self._texts.times(self._text) >= self._guard.same_texts:
            raise errors.Conflict("duplicate")

    def _refuse_full(self, bucket: rate_limits.RateLimitBucket) -> None:
        if bucket.is_empty:
            raise errors.TooMany("too-many-posts", retry_after=bucket.wait(self._now))

    def _refuse_more(self, journal: rate_limits.RateLimitJournal) -> None:
        self._refuse_full(journal)
        if journal.times(self._text):
            raise errors.Conflict("duplicate")


def _proof(
    solution: str, request: SiteRequest, guard: post_limits.PostLimits
) -> proof_of_work.Proof:
    """Check a post's proof of work, and return the decoded proof.

    Raises:
        errors.Forbidden: the proof is missing or not valid.
        errors.TooMany: the form was sent too soon after it was opened.
    """
    purpose, now = proof_policy.ChallengePurpose.POST, request.now
    secret = request.settings.secret
    proof = proof_policy.check(solution, request.site.id, purpose, secret=secret, now=now)
    left = guard.form_seconds - (now - proof.opened).total_seconds()
    if left > 0:
        raise errors.TooMany("too-fast", retry_after=max(1, round(left)))
    return proof


def _turnstile(
    asked: records.Turnstile, request: SiteRequest, post: str, token: str
) -> turnstile.TurnstileAnswer:
    """Verify a Turnstile token. Return YES or UNKNOWN.

    Raises:
        errors.Forbidden: the token is missing or not valid for this site.
    """
    site = request.site
    if not token:
        raise errors.Forbidden("turnstile-required")
    try:
        shared = encryption.unseal(
            asked.secret, TURNSTILE, request.settings.secret, now=request.now
        )
    except errors.BadLink:
        _log.error("The Turnstile secret of site %s cannot be decrypted; set it again", site.id)
        return turnstile.TurnstileAnswer.UNKNOWN
    hosts = {urlsplit(origin).hostname or "" for origin in site.origins}
    where = turnstile.TurnstileAccount(asked.url or turnstile.ADDRESS, shared, hosts)
    client = turnstile.OUTBOUND.get()
    answer = turnstile.verify(client, where, token, post)
    if answer is turnstile.TurnstileAnswer.NO:
        raise errors.Forbidden("turnstile-refused")
    return answer


def _text_digest(site: str, body: str, secret: str) -> bytes:
    """Return a digest of a text, ignoring spacing and case, or `NOTHING` for a short text."""
    plain = _BLANK.sub(" ", body).strip().casefold()
    if len(plain) < SHORTEST_TEXT:
        return rate_limits.NOTHING
    return keyed_hashes.keyed(secret, "text", site, plain)[:8]
