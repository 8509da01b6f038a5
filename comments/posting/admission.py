"""Admit or refuse a post before it is stored, to keep bots out.

Owns the order of the checks, and the rows that count the post. No part of a refused post is stored.
These checks do not judge the text; the site's rules do that. The checks are:

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
for the site (`post_buckets.FORMS`), in a third row, protects moderators from a flood.

`prepare` makes the checks that need no rows. Then `Admission.admit` checks and counts the post in
the transaction that stores the comment (`post_storage`), so one look-up and one commit serve both.
`post_buckets` chooses the rows that count a post.

Invariants:

1. A post that admission refuses is not counted. A post that admission admits is counted, and its
   proof is spent, even if the post is then refused: because a rule refuses the text, the author is
   banned, the thread is closed or above its limit, the answered comment is missing or accepts no
   reply, or the idempotency key was used for different content. The commit then contains only the
   counts.
2. A retry of an admitted post with the same idempotency key is admitted and not counted again. Both
   rows remember the post, and before a retry is refused, the store is searched for the post's
   comment. This also makes it safe to run the transaction several times.
3. If posts are concurrent, exactly the allowed number is admitted, because the store serializes
   their transactions.
4. If the store does not answer within `PATIENCE` seconds, the post fails with 503, and nothing is
   stored and nothing is counted. Skipping the limits would not help, because the comment must be
   stored in the same store.
"""

import dataclasses
import hashlib
import logging
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from comments import errors
from comments.domain import author_ids, reasons, records
from comments.domain.crypto import proof_of_work
from comments.domain.records import Ruling, Status
from comments.moderation import screening
from comments.posting import post_buckets, turnstile
from comments.sites import budgets, post_limits, proof_policy, rate_limits
from comments.sites.site_request import SiteRequest
from comments.store import caches, connection, ownership, per_process, reads
from comments.store.models import comment_rows

_log = logging.getLogger("flatthread")

PATIENCE = 5.0  # Seconds.
_AGAIN = 60  # seconds
_JUST = 10.0  # Seconds for which a refusal makes another one likely.
# The limit per network for posts that a form without JavaScript sends, so without proofs. Each of
# these posts waits for a moderator.
FORM_POSTS = 3

_REFUSALS = (
    errors.BadInput,
    errors.Forbidden,
    errors.Conflict,
    errors.TooMany,
    errors.Unchecked,
)
# The lines of posts that this process refused; see `Admission.check_early`.
_REFUSED = per_process.PerProcess(lambda: caches.Cache[str, bool](10_000, _JUST))

_SILENT = (reasons.HoldReason("turnstile"),)
_PLAIN = (reasons.HoldReason("form"),)
_UNASKED = Ruling(Status.PENDING, turnstile.PURPOSE, reasons.sentence(_SILENT), _SILENT)
_UNPROVEN = Ruling(Status.PENDING, "form", reasons.sentence(_PLAIN), _PLAIN)


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

    `is_retry` is True if the post was counted before. `repeats` is the number of times that the
    text was posted on the site within a day, including
    this post. The number is 0 for a retry, and if none of the site's rules uses it. `doubt` is the
    ruling for a post that would otherwise be approved, if admission has a reason to hold it.
    """

    repeats: int = 0
    doubt: Ruling | None = None
    is_retry: bool = False


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


def prepare(
    entrant: Entrant, request: SiteRequest, guard: post_limits.PostLimits
) -> "Admission | None":
    """Make the checks that need no rows, and choose the rows for the other checks.

    Return None if the post is a retry of a stored post that would now be refused.

    Raises:
        errors.BadInput: the post has a website, and the site's options allow none.
        errors.Forbidden: the honeypot was filled in, the proof of work is missing, wrong or
            expired, or the author is a guest and the site's options allow none.
        errors.TooMany: the form was sent too soon after it was opened, or the site is read-only
            because its daily budget is spent.
        errors.Unchecked: Turnstile did not answer, and the site's settings refuse such posts.
        errors.Conflict: see `Admission.admit`.
        errors.Overloaded: the store did not answer in time.
    """
    if entrant.trap:
        raise errors.Forbidden("not-accepted")
    try:
        _check_options(entrant.text.author, request.site)
        if request.site.budget != records.NO_BUDGET:
            budgets.check(request.site, now=request.now)
            guard = budgets.guarded(request.site, guard, now=request.now)
        prepared = Admission(entrant, request, guard)
        prepared.check_early()
    except _REFUSALS:
        if not _is_stored(entrant):
            raise
        return None
    return prepared


def _is_stored(entrant: Entrant) -> bool:
    """Tell whether a post is a retry whose comment exists."""
    return entrant.repeats and reads.get(comment_rows.comment_key(entrant.post)) is not None


def _check_options(author: records.Author, site: records.Site) -> None:
    if not (site.options.guests or author.id.startswith(author_ids.ACCOUNT)):
        raise errors.Forbidden("guests-off")
    if author.website and not site.options.website:
        raise errors.BadInput("website", "website-off")


class Admission:
    """The admission of one post: it chooses the rows that count the post, and admits or refuses it.

    `buckets` are the rows to read before `admit`. `line` is the row that concurrent posts from the
    same network or author write, or "" if admission uses no rows.
    """

    def __init__(
        self, entrant: Entrant, request: SiteRequest, guard: post_limits.PostLimits
    ) -> None:
        self._is_unproven = entrant.is_plain and holds_forms(request.site, guard)
        self._doubt = _UNPROVEN if self._is_unproven else None
        if self._is_unproven:
            most = min(guard.posts_per_network or FORM_POSTS, FORM_POSTS)
            guard = dataclasses.replace(guard, proof_of_work=0, posts_per_network=most)
        self._entrant, self._request, self._guard = entrant, request, guard
        self._now = request.now
        self._is_member = entrant.text.author.id.startswith(author_ids.ACCOUNT)
        self._what = hashlib.sha256(entrant.post.encode()).digest()[:8]
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
        if request.site.turnstile is not None and not self._is_unproven:
            self._ask_turnstile(request.site.turnstile)
        subject = post_buckets.Subject(
            request.site.id, request.sender.network, entrant.text.author.id, entrant.text.body
        )
        self._chosen = post_buckets.PostBuckets(
            subject, guard, request.settings.secret,
            proof=self._proof, once=self._once, counts=entrant.counts, is_form=self._is_unproven,
        )  # fmt: skip
        self.buckets, self.line = self._chosen.all, self._chosen.line

    def _ask_turnstile(self, asked: records.Turnstile) -> None:
        if self._is_member or self._problem is not None:
            return
        token = self._entrant.turnstile
        try:
            answer = turnstile.check(asked, self._request, self._entrant.post, token)
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

    def check_early(self) -> None:
        """Refuse a post that will probably be refused, before the thread's rows are read.

        A refusal is then as cheap as it can be: it reads only the rows of admission. These are the
        posts without a valid proof, and those that this process has just refused to their network
        or author.

        Raises:
            errors.CodedError: see `admit`.
        """
        if not self._chosen.journals:
            self._raise_problem()
        elif self._problem is not None or _REFUSED.get().get(self.line):
            with connection.within(PATIENCE):
                rate_limits.read(*self.buckets, now=self._now)
            self._check()

    def admit(self, shared: rate_limits.SharedBuckets) -> Admitted:
        """Check and count the post in the current transaction.

        Raises:
            errors.Forbidden: the proof of work was used before, or see `prepare`.
            errors.Conflict: the same text was posted recently.
            errors.TooMany: a rate limit is reached, or see `prepare`.
            errors.Unchecked: see `prepare`.
        """
        shared.lend(self.buckets, now=self._now)
        try:
            is_retry = self._check()
        except _REFUSALS:
            if not _is_stored(self._entrant):
                raise
            return Admitted(is_retry=True)
        if not is_retry:
            shared.keep(self._count())
        texts = self._chosen.texts if self._entrant.counts and not is_retry else None
        return Admitted(0 if texts is None else texts.count, self._doubt, is_retry)

    def _check(self) -> bool:
        """Return whether the post is a retry that was counted before, or raise an error."""
        if any(journal.knows(self._what) for journal in self._chosen.journals):
            return True
        try:
            self._raise_problem()
            self._refuse()
        except _REFUSALS:
            if self.line:
                _REFUSED.get().keep(self.line, value=True)
            raise
        return False

    def _count(self) -> Iterator[ownership.Writes]:
        chosen, at = self._chosen, int(self._now.timestamp())
        mark = rate_limits.CountedItem(at, self._what, chosen.text, self._once)
        # If the text's row is only a counter, its mark omits the digests, because marks with a
        # proof are kept for longer.
        counted = rate_limits.CountedItem(at, self._what)
        for journal in chosen.journals:
            is_counter = journal is chosen.texts and not chosen.limits_texts
            yield journal.note(counted if is_counter else mark)
        for bucket in chosen.around:
            yield bucket.take()

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _refuse(self) -> None:
        """Raise an error if a limit is reached, or if the proof or text has been used before."""
        chosen = self._chosen
        if chosen.network is not None and chosen.network.is_spent(self._once):
            if self._proof is None:
                raise errors.Forbidden("turnstile-refused")
            raise errors.Forbidden("proof-spent")
        for journal in (chosen.network, chosen.author):
            if journal is not None:
                self._refuse_more(journal)
        for bucket in chosen.around:
            self._refuse_full(bucket)
        if chosen.texts is None or not chosen.limits_texts:
            return
        if chosen.texts.times(chosen.text) >= self._guard.same_texts:
            raise errors.Conflict("duplicate")

    def _refuse_full(self, bucket: rate_limits.RateLimitBucket) -> None:
        if bucket.is_empty:
            raise errors.TooMany("too-many-posts", retry_after=bucket.wait(self._now))

    def _refuse_more(self, journal: rate_limits.RateLimitJournal) -> None:
        self._refuse_full(journal)
        if journal.times(self._chosen.text):
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
