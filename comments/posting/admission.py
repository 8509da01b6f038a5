"""Admit or refuse a post before it is stored, to keep bots out.

This module owns the order of the checks and the rows that count posts. No part of a refused post is
stored. These checks do not judge the text; the site's rules do that. The checks are:

1. The honeypot, a field that only bots fill in, and the site's options about guests and authors'
   websites.
2. A proof of work. The proof must be made for this site and must not have expired. A proof is valid
   for one post, and is refused if the form was opened only a moment ago. The post counts against
   the network that requested the challenge, even if it is sent from a different network, because
   phones switch networks while people write. Bots gain nothing by switching networks. Signed-in
   authors need no proof, because their posts are counted per author and their accounts can be
   banned.
3. A Turnstile token, if the site requires one. Cloudflare verifies the token within a short time
   limit. If Cloudflare cannot be reached, the site's settings decide whether the post is held or is
   refused with a request to try again.
4. Rate limits for posts per network and site, for posts per known author, and for repeats of a text
   by one network, by one author, or by newcomers from several networks.

A form without JavaScript cannot send the proofs that checks 2 and 3 require. If the site requires
such a proof, posts from these forms are held for a moderator instead, and the limits per network
are stricter (`FORM_POSTS`). A limit per site (`FORMS`), which is counted in a third row, protects
moderators from a flood of these posts.

`prepare` runs the checks that need no rows. Then `PreparedPost.admit` checks and counts the post in
the transaction that stores the comment (`post_storage`). The check and the comment together
therefore need only one look-up and one commit.

A post is counted in two rows (`rate_limits.RateLimitJournal`). The first row is the network's row,
which also remembers proofs and texts. The second row is the author's row or, for a newcomer, the
text's row. If one of the site's rules uses `repeated`, the text's row is one of the two rows for
every author. It then also counts how often the text was posted within a day. For guests, the other
row is the network's row, because anyone can get a guest id. For signed-in authors, the other row is
the author's row, because their accounts can be banned. The limit of the thread is counted with the
comments of the thread (`tree.counters`).

A post that admission refuses is not counted. A post that admission admits is counted, and its proof
is spent, even if the post is refused later. The reason may be that a rule refuses the text, the
author is banned, the thread is closed or above its limit, the answered comment is missing or
accepts no reply, or the idempotency key was used for different content. If admission admits a post
that is then refused, the commit contains only the counts.

A retry of an admitted post with the same idempotency key is admitted and not counted again. Both
rows remember the post. Before a retry is refused, this module searches the store for the post's
comment. If the store does not answer within `PATIENCE` seconds, the post fails with 503, and
nothing is stored or counted. Skipping the limits would not help, because the comment must be stored
in the same store.
"""

import dataclasses
import hashlib
import logging
import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.crypto import client_networks, keyed_hashes, proof_of_work
from comments.domain.ids import author_ids
from comments.domain.moderation import reasons
from comments.domain.records import Ruling, Status
from comments.limits import budgets, post_limits, proof_policy, rate_limits, turnstile
from comments.limits.site_request import SiteRequest
from comments.moderation import screening
from comments.moderation.policy import rulebook, rules
from comments.store import connection, ownership, reads
from comments.store.memory import caches, per_process
from comments.store.models import comment_rows
from comments.tree.values import Draft

_log = logging.getLogger("flatthread")

PATIENCE = 5.0  # Seconds to wait for the store.
_AGAIN = 60  # Seconds after which a client should try again
_JUST = 10.0  # Seconds after a refusal during which the next post is likely to be refused.
WINDOW = timedelta(minutes=10)
DAY = timedelta(days=1)
KEEPS = timedelta(hours=1)
# The limit per network for posts from forms without JavaScript, which cannot send proofs. Each of
# these posts waits for a moderator.
FORM_POSTS = 3
# The limit per site for posts from forms without JavaScript.
FORMS = rate_limits.Limit("forms", 20, timedelta(hours=1))
# The shortest text, in characters, whose repeats are limited. Shorter texts, such as "Thank you
# very much!", are often repeated in good faith.
SHORTEST_TEXT = 24

_BLANK = re.compile(r"\s+")
_REFUSALS = (
    errors.BadInput,
    errors.Forbidden,
    errors.Conflict,
    errors.TooMany,
    errors.Unchecked,
)
# The rows (`PreparedPost.line`) of posts that this process refused recently; see
# `PreparedPost.check`.
_REFUSED = per_process.PerProcess(lambda: caches.Cache[str, bool](10_000, _JUST))

_SILENT = (reasons.HoldReason("turnstile"),)
_PLAIN = (reasons.HoldReason("form"),)
_UNASKED = Ruling(Status.PENDING, turnstile.PURPOSE, reasons.sentence(_SILENT), _SILENT)
_UNPROVEN = Ruling(Status.PENDING, "form", reasons.sentence(_PLAIN), _PLAIN)


@dataclasses.dataclass(frozen=True, slots=True)
class Submission:
    """A comment as a reader sent it. `parent` is the id of the comment to which it replies.

    `title`, `url` and `categories` are thread data (`naming`). For a comment from a test page,
    these three fields are not stored, because they may differ from those of the thread's page.
    `key` is the idempotency key. It belongs to `asked`, the id by which the reader named the thread
    (if it is not `thread`), because the thread may be merged before a retry. `since` is the
    creation time of the author's account, if the author has one. `proof`, `turnstile` and `trap`
    are checked before the comment is stored; a form without JavaScript (`is_plain`) has no proofs.
    """

    thread: str
    parent: str | None
    author: records.Author
    body: str
    title: str = ""
    url: str = ""
    key: str | None = None
    asked: str = ""
    categories: tuple[str, ...] = ()
    since: datetime | None = None
    proof: str = ""
    turnstile: str = ""
    trap: str = ""
    is_plain: bool = False
    is_from_test_page: bool = False


def challenge(request: SiteRequest) -> proof_of_work.Challenge:
    """Make a challenge for a post, with the Turnstile site key if the site has one."""
    made = proof_policy.challenge(request, proof_policy.ChallengePurpose.POST)
    key = "" if request.site.turnstile is None else request.site.turnstile.key
    return msgspec.structs.replace(made, turnstile=key)


def holds_forms(site: records.Site, limits: post_limits.PostLimits) -> bool:
    """Return whether posts from forms without JavaScript are held, and limited more strictly.

    On a site that requires no proofs, such a form gives bots no advantage over the API.
    """
    return bool(limits.proof_of_work) or site.turnstile is not None


class PreparedPost:
    """A post that can be stored, with the rows that count it.

    `buckets` are the rows to read before `admit`. `line` names the row that concurrent posts from
    the same network or author also write, or is "" if the post is not counted. `is_exempt` is True
    if the post is a retry of a stored post that would now be refused. `scheme` is the site's scheme
    according to this process's copy of the site.

    Args:
        text: the text to screen. For a newcomer, the id of its author is empty.
    """

    def __init__(
        self,
        sent: Submission,
        draft: Draft,
        text: screening.ScreenedText,
        book: rulebook.Rulebook,
        request: SiteRequest,
    ) -> None:
        self.draft, self.scheme, self.is_exempt = draft, request.site.scheme, False
        self.buckets: list[rate_limits.RateLimitBucket] = []
        self.line = ""
        self._sent, self._text, self._book, self._request = sent, text, book, request
        self._now = request.now
        self._is_member = text.author.id.startswith(author_ids.ACCOUNT)
        self._what = hashlib.sha256(draft.id.encode()).digest()[:8]
        self._proof: proof_of_work.Proof | None = None
        # The digest of the proof or token. A proof or token is valid for one post only.
        self._once = rate_limits.NOTHING
        # The problem is raised only after the rows show that the post is not a retry, because a
        # retry is admitted even if its proof has expired.
        self._problem: errors.FlatthreadError | None = None
        self._held: Ruling | None = None
        self._journals: list[rate_limits.RateLimitJournal] = []
        self._by_network: rate_limits.RateLimitJournal | None = None
        self._by_author: rate_limits.RateLimitJournal | None = None
        self._by_text: rate_limits.RateLimitJournal | None = None
        # The buckets of the wider networks around an IPv6 network, and of the site's forms.
        self._around: list[rate_limits.RateLimitBucket] = []
        # The results of `admit`: why to hold a post that would otherwise be approved, and how often
        # the text was posted on the site within a day, including this post. This number is 0 if the
        # post is a retry or if none of the site's rules uses the number.
        self._doubt: Ruling | None = None
        self._repeats = 0

    def decide(self, thread: records.Thread, is_known: bool) -> Ruling:  # noqa: FBT001 - see `Decide`
        """Screen the post; see `screening.of_post`."""
        return screening.of_post(
            self._text,
            self._book,
            thread,
            is_known,
            repeats=self._repeats,
            now=self._now,
            doubt=self._doubt,
        )

    def check(self, limits: post_limits.PostLimits) -> None:
        """Run the checks that need no rows, and choose the rows for the other checks.

        If a post has no valid proof, or if this process has just refused a post from the same
        network or author, the post will probably be refused. The rows of admission are then checked
        before the thread's rows are read, which keeps the refusal cheap.

        Raises:
            errors.CodedError: see `prepare`.
        """
        site = self._request.site
        _check_options(self._text.author, site)
        if site.budget != records.NO_BUDGET:
            budgets.check(site, now=self._now)
            limits = budgets.tighten(site, limits, now=self._now)
        is_unproven = self._sent.is_plain and holds_forms(site, limits)
        if is_unproven:
            self._held = _UNPROVEN
            most = min(limits.posts_per_network or FORM_POSTS, FORM_POSTS)
            limits = dataclasses.replace(limits, proof_of_work=0, posts_per_network=most)
        if limits.proof_of_work and not self._is_member:
            try:
                self._proof = _proof(self._sent.proof, self._request, limits)
                self._once = self._proof.digest
            except (errors.Forbidden, errors.TooMany) as error:
                self._problem = error
        if site.turnstile is not None and not is_unproven:
            self._ask_turnstile(site.turnstile)
        self._choose_rows(limits, is_form=is_unproven)
        if self._problem is not None or (self.line and _REFUSED.get().get(self.line)):
            with connection.within(PATIENCE):
                rate_limits.read(*self.buckets, now=self._now)
            self._check_rows()

    def _ask_turnstile(self, asked: records.Turnstile) -> None:
        if self._is_member or self._problem is not None:
            return
        token = self._sent.turnstile
        try:
            answer = turnstile.check(asked, self._request, self.draft.id, token)
        except errors.Forbidden as error:
            self._problem = error
            return
        if self._proof is None:
            self._once = turnstile.digest(token)
        if answer is turnstile.TurnstileAnswer.UNKNOWN:
            _log.warning("Turnstile did not answer for site %s", self._request.site.id)
            self._held = _UNASKED
            if asked.refuses:
                self._problem = errors.Unchecked("turnstile-unavailable", retry_after=_AGAIN)

    def _choose_rows(self, limits: post_limits.PostLimits, *, is_form: bool) -> None:
        site, secret = self._request.site.id, self._request.settings.secret
        author, body = self._text.author.id, self._text.body
        counts = self._book.has_condition("repeated")
        is_known = bool(author) and (self._is_member or not counts)
        self._most_texts = limits.same_texts
        self._digest = (
            rate_limits.NOTHING if not limits.same_texts else _text_digest(site, body, secret)
        )
        has_text = self._digest != rate_limits.NOTHING
        # If this is False, the text's row only counts repeats.
        self._limits_texts = has_text and not is_known
        if is_known and (limits.posts_per_author or has_text):
            whose = f"{site}/{author}"
            self._by_author = self._journal("authors", limits.posts_per_author, whose)
        if counts or self._limits_texts:
            # Texts that rules treat as equal share a row, and the marks in that row distinguish the
            # texts.
            window = DAY if counts else WINDOW
            self._by_text = self._journal("texts", 0, f"{site}\0{rules.likeness(body)}", window)
        has_mark = has_text or self._once != rate_limits.NOTHING
        if None in (self._by_author, self._by_text) and (limits.posts_per_network or has_mark):
            self._count_network(limits.posts_per_network)
        candidates = (self._by_network, self._by_author, self._by_text)
        self._journals = [journal for journal in candidates if journal is not None]
        if self._journals:
            if is_form:
                self._around.append(rate_limits.RateLimitBucket(FORMS, site, secret))
            self.buckets = [*self._journals, *self._around]
            self.line = f"admission/{self._journals[0].key.id()}"

    def _count_network(self, most: int) -> None:
        """Count the post for the network that requested the challenge, and networks around it."""
        site, secret, proof = self._request.site.id, self._request.settings.secret, self._proof
        network = self._request.sender.network
        whose = proof.network if proof else proof_policy.account(site, network, secret)
        self._by_network = self._journal("posts", most, whose)
        if not most:
            return
        limit = rate_limits.Limit("posts", most, WINDOW)
        around = proof.around if proof else proof_policy.accounts_around(site, network, secret)
        self._around = [
            rate_limits.RateLimitBucket(limit.wider(factor), name, secret)
            for (_, factor), name in zip(client_networks.WIDER, around, strict=False)
        ]

    def _journal(
        self, purpose: str, most: int, subject: str, window: timedelta = WINDOW
    ) -> rate_limits.RateLimitJournal:
        # Without a limit, the journal only remembers posts.
        limit = rate_limits.Limit(purpose, most or rate_limits.UNLIMITED, window, KEEPS)
        return rate_limits.RateLimitJournal(limit, subject, self._request.settings.secret)

    def admit(self, shared: rate_limits.SharedBuckets) -> bool:
        """Check and count the post in the current transaction. Return whether the post is a retry.

        Raises:
            errors.Forbidden: the proof of work was used before; for other reasons, see `prepare`.
            errors.Conflict: the same text was posted recently.
            errors.TooMany: a rate limit is reached; for other reasons, see `prepare`.
            errors.Unchecked: see `prepare`.
        """
        self._repeats, self._doubt = 0, None
        if self.is_exempt:
            return False
        shared.lend(self.buckets, now=self._now)
        try:
            is_retry = self._check_rows()
        except _REFUSALS:
            if not self.is_stored():
                raise
            return True
        self._doubt = self._held
        if not is_retry:
            shared.keep(self._count_writes())
            if self._by_text is not None and self._book.has_condition("repeated"):
                self._repeats = self._by_text.count
        return is_retry

    def is_stored(self) -> bool:
        """Return whether the post is a retry whose comment exists."""
        key = comment_rows.comment_key(self.draft.id)
        return self._sent.key is not None and reads.get(key) is not None

    def _check_rows(self) -> bool:
        """Return whether the post is a retry that was counted before, or raise an error."""
        if any(journal.knows(self._what) for journal in self._journals):
            return True
        try:
            self._refuse()
        except _REFUSALS:
            if self.line:
                _REFUSED.get().keep(self.line, value=True)
            raise
        return False

    def _count_writes(self) -> Iterator[ownership.Writes]:
        at = int(self._now.timestamp())
        mark = rate_limits.CountedItem(at, self._what, self._digest, self._once)
        # If the text's row is only a counter, its mark omits the digests, because marks with a
        # proof are kept for longer.
        counted = rate_limits.CountedItem(at, self._what)
        for journal in self._journals:
            is_counter = journal is self._by_text and not self._limits_texts
            yield journal.note_writes(counted if is_counter else mark)
        for bucket in self._around:
            yield bucket.count_writes()

    def _refuse(self) -> None:
        """Raise an error if a limit is reached, or if the proof or text has been used before."""
        if self._problem is not None:
            raise self._problem
        if self._by_network is not None and self._by_network.is_spent(self._once):
            raise errors.Forbidden("proof-spent" if self._proof else "turnstile-refused")
        for journal in filter(None, (self._by_network, self._by_author)):
            _check_room(journal, self._now)
            if journal.times(self._digest):
                raise errors.Conflict("duplicate")
        for bucket in self._around:
            _check_room(bucket, self._now)
        if self._by_text is None or not self._limits_texts:
            return
        if self._by_text.times(self._digest) >= self._most_texts:
            raise errors.Conflict("duplicate")


def _check_room(bucket: rate_limits.RateLimitBucket, now: datetime) -> None:
    if bucket.is_empty:
        raise errors.TooMany("too-many-posts", retry_after=bucket.wait(now))


def prepare(
    sent: Submission,
    draft: Draft,
    text: screening.ScreenedText,
    book: rulebook.Rulebook,
    request: SiteRequest,
    *,
    limits: post_limits.PostLimits,
) -> PreparedPost:
    """Run the checks that need no rows, and choose the rows for the other checks.

    Raises:
        errors.BadInput: the post has a website, and the site's options allow none.
        errors.Forbidden: the honeypot was filled in, the proof of work is missing, wrong or
            expired, or the author is a guest and the site's options allow none.
        errors.TooMany: the form was sent too soon after it was opened, or the site is read-only
            because its daily budget is spent.
        errors.Unchecked: Turnstile did not answer, and the site's settings refuse such posts.
        errors.Conflict: see `PreparedPost.admit`.
        errors.Overloaded: the store did not answer in time.
    """
    if sent.trap:
        raise errors.Forbidden("not-accepted")
    post = PreparedPost(sent, draft, text, book, request)
    try:
        post.check(limits)
    except _REFUSALS:
        if not post.is_stored():
            raise
        post.is_exempt, post.buckets, post.line = True, [], ""
    return post


def _check_options(author: records.Author, site: records.Site) -> None:
    if not (site.options.guests or author.id.startswith(author_ids.ACCOUNT)):
        raise errors.Forbidden("guests-off")
    if author.website and not site.options.website:
        raise errors.BadInput("website", "website-off")


def _proof(
    solution: str, request: SiteRequest, limits: post_limits.PostLimits
) -> proof_of_work.Proof:
    """Check a post's proof of work, and return the decoded proof.

    Raises:
        errors.Forbidden: the proof is missing or not valid.
        errors.TooMany: the form was sent too soon after it was opened.
    """
    purpose, now = proof_policy.ChallengePurpose.POST, request.now
    secret = request.settings.secret
    proof = proof_policy.check(solution, request.site.id, purpose, secret=secret, now=now)
    left = limits.form_seconds - (now - proof.opened).total_seconds()
    if left > 0:
        raise errors.TooMany("too-fast", retry_after=max(1, round(left)))
    return proof


def _text_digest(site: str, body: str, secret: str) -> bytes:
    """Return a digest of a text, ignoring spacing and case, or `NOTHING` for a short text."""
    plain = _BLANK.sub(" ", body).strip().casefold()
    if len(plain) < SHORTEST_TEXT:
        return rate_limits.NOTHING
    return keyed_hashes.keyed_digest(secret, "text", site, plain)[:8]
