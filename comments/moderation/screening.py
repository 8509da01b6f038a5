"""Screen a new or edited text: determine its status from bans, rules, policy and classifiers.

In the post's transaction, screening costs at most one read: the author's number of approved
comments. This number is read only if the author has an id and the decision depends on the number.
The rulebook comes from the process's cache. If a rule needs to know how often the text was posted
within a day, `admission` counts the posts.

Staff of the site, except banned ones, need no approval: rules, policy and classifiers judge only
the texts of others. `Author.is_staff` is true only for an account with a role on the site.

Invariant: Trust is tied to the author id from a token or an account, never to a name or mail
address, which anyone can enter
(test_screening.py::test_trust_belongs_to_the_author_id_and_not_to_a_name_or_address).

A shadowed comment looks to its author as it would without the shadow.
"""

import dataclasses
import functools
from collections.abc import Callable
from datetime import datetime

from comments import errors
from comments.accounts import accounts
from comments.domain import records
from comments.domain.counters.counting import APPROVED
from comments.domain.crypto import caller_marks, encryption
from comments.domain.ids import author_ids
from comments.domain.moderation import classifier_verdicts, reasons
from comments.domain.records import Policy, Ruling, Status
from comments.moderation import thread_access
from comments.moderation.policy import rulebook, rules
from comments.store import reads
from comments.store.models import counter_rows

_BAN = "ban"
_UNTOLD = "its author is shadow-banned"
_POLICY = "policy:{}"


@dataclasses.dataclass(frozen=True, slots=True)
class ScreenedText:
    """A text to screen. `author.id` is empty for a newcomer.

    `since` is the time when the author's account was created, if the author has one. Bans are
    matched against the caller marks in `marks`.
    """

    site: str
    author: records.Author
    body: str
    html: str
    network: str = ""
    since: datetime | None = None
    marks: caller_marks.Marks = caller_marks.Marks()  # noqa: RUF009 - a plain value


def of_post(  # noqa: PLR0913 - everything that a ruling may depend on
    text: ScreenedText,
    book: rulebook.Rulebook,
    thread: records.Thread,
    is_known: bool,  # noqa: FBT001 - see `values.Decide`
    *,
    repeats: int,
    now: datetime,
    doubt: Ruling | None = None,
) -> Ruling:
    """Screen a new comment.

    `is_known` says whether the author has an approved comment in this thread. `repeats` is how
    often the text was posted on the site within a day, including this post. It is 0 if no rule
    needs the number. `doubt` is a ruling from admission that applies to a comment that would
    otherwise be approved.

    Raises:
        errors.Conflict: comments are closed in the thread.
        errors.Forbidden: the author is banned, or a rule refuses the text.
    """
    _check_open(thread, book, now)
    standing = functools.cache(lambda: _approved_count(text))

    def approved_count() -> int:
        return standing() or int(is_known)

    def otherwise() -> Ruling:
        if text.author.is_staff:
            return Ruling(Status.APPROVED)
        ruling = _by_policy(
            thread.policy or book.policy,
            lambda: rules.count_links(_subject(text, now)) > 0,
            lambda: is_known or standing() > 0,
        )
        if doubt and ruling.status is Status.APPROVED:
            return doubt
        return _by_classifiers(book, text, ruling)

    return _first_ruling(_by_rules(book, text, approved_count, repeats, now), otherwise)


def of_edit(
    text: ScreenedText,
    before: records.Comment,
    thread: records.Thread | None,
    book: rulebook.Rulebook,
    *,
    now: datetime,
) -> Ruling | None:
    """Screen an edited text; return None if the comment keeps its status.

    Raises:
        errors.Conflict: the thread is read-only.
        errors.Forbidden: the author is banned, or a rule refuses the text.
    """
    policy = (thread and thread.policy) or book.policy
    if policy is Policy.READ_ONLY:
        raise errors.Conflict("read-only")

    def otherwise() -> Ruling:
        if text.author.is_staff:
            return Ruling(Status.APPROVED)
        has_new = bool(rules.links(text.html) - rules.links(before.html))
        spelt = rules.count_links(_subject(text, now)) > rules.count_links(
            rules.RuleSubject(before.body, "")
        )
        return _by_classifiers(
            book, text, _by_policy(policy, lambda: has_new or spelt, lambda: True)
        )

    first = _by_rules(book, text, lambda: _approved_count(text), 0, now)
    ruling = _first_ruling(first, otherwise)
    # A rule may now hold, for a different reason, a comment that was already held (`changes.edit`).
    is_held_anew = ruling.status is before.status is Status.PENDING
    is_stricter = rules.is_stricter(ruling.status, before.status)
    return ruling if is_stricter or is_held_anew else None


def questions(
    book: rulebook.Rulebook,
    author: records.Author,
    sender: classifier_verdicts.Sender,
    secret: str,
    *,
    now: datetime,
) -> str:
    """Encode the list of classifiers to ask about a text, for the text's event; "" if none.

    The id of `author` is empty for a newcomer. The result includes the encrypted `sender` only if a
    classifier needs it.
    """
    names = tuple(classifier.name for classifier in _classifiers(book, author.id))
    if not names or author.is_staff:
        return ""
    sent = ""
    if classifier_verdicts.AKISMET in names:
        encoded_sender = classifier_verdicts.encode(sender)
        sent = encryption.seal(encoded_sender, classifier_verdicts.SENDER, secret, now=now)
    return classifier_verdicts.encode(classifier_verdicts.ClassifiersToAsk(names, sent))


def _classifiers(
    book: rulebook.Rulebook, author: str
) -> tuple[classifier_verdicts.Classifier, ...]:
    """Return the classifiers that a site asks about an author's texts."""
    if not book.classifiers:
        return ()
    return classifier_verdicts.classifiers_for(
        book.classifiers, is_guest=not author.startswith(accounts.AUTHOR)
    )


def _by_classifiers(book: rulebook.Rulebook, text: ScreenedText, ruling: Ruling) -> Ruling:
    """Hold an otherwise approved text if classifiers must answer before it is shown."""
    if ruling.status is not Status.APPROVED:
        return ruling
    first = [
        classifier.name for classifier in _classifiers(book, text.author.id) if classifier.holds
    ]
    if not first:
        return ruling
    return _hold_ruling(
        classifier_verdicts.rule(first), "verdict", classifiers=classifier_verdicts.in_words(first)
    )


def _first_ruling(ruling: Ruling, otherwise: Callable[[], Ruling]) -> Ruling:
    """Return the `ruling` of rules and bans; if it is "approved", return `otherwise()`."""
    if ruling.status is Status.APPROVED:
        return otherwise()
    # A shadowed text must look to its author as it would without the shadow. If the text would be
    # pending, store it as spam, which its author sees as pending
    # (`presentation.status_for_author`).
    if ruling.status is Status.SHADOWED and otherwise().status is Status.PENDING:
        return Ruling(Status.SPAM, ruling.rule, ruling.why, ruling.reasons)
    return ruling


def _by_rules(
    book: rulebook.Rulebook,
    text: ScreenedText,
    approved: Callable[[], int],
    repeats: int,
    now: datetime,
) -> Ruling:
    ban = book.ban_of(text.author.id, now) or book.strictest_ban(text.marks, now)
    if ban is not None and not ban.is_shadow:
        raise errors.Forbidden("author-banned")
    ruling = Ruling(Status.APPROVED)
    if book.rules and not text.author.is_staff:
        ruling = rules.judge(book.rules, _subject(text, now, approved, repeats))
    if ruling.status is Status.REJECTED:
        raise errors.Forbidden("comment-refused")
    if ban is not None and not rules.is_stricter(ruling.status, Status.SHADOWED):
        # A text that a rule holds must also look pending to its author (see `_first_ruling`).
        is_held = ruling.status is Status.PENDING
        return Ruling(Status.SPAM if is_held else Status.SHADOWED, _BAN, _UNTOLD)
    return ruling


def _by_policy(
    policy: Policy, has_links: Callable[[], bool], is_trusted: Callable[[], bool]
) -> Ruling:
    """Apply a policy to a text that no rule matches.

    The function calls `has_links` and `is_trusted` only if the policy needs them.
    """
    is_held = (
        policy is Policy.ALL
        or (policy is Policy.LINKS and has_links())
        or (policy is Policy.FIRST and not is_trusted())
    )
    if not is_held:
        return Ruling(Status.APPROVED)
    return _hold_ruling(_POLICY.format(policy), f"policy-{policy}")


def _hold_ruling(rule: str, code: str, **params: str) -> Ruling:
    hold_reasons = (reasons.HoldReason(code, {**params}),)
    return Ruling(Status.PENDING, rule, reasons.sentence(hold_reasons), hold_reasons)


def _check_open(thread: records.Thread, book: rulebook.Rulebook, now: datetime) -> None:
    access = thread_access.of(thread, book, now)
    if access is thread_access.ThreadAccess.READ_ONLY:
        raise errors.Conflict("read-only")
    if access is thread_access.ThreadAccess.CLOSED:
        raise errors.Conflict("thread-closed")


def _subject(
    text: ScreenedText, now: datetime, approved: Callable[[], int] = int, repeats: int = 0
) -> rules.RuleSubject:
    return rules.RuleSubject(
        body=text.body,
        html=text.html,
        name=text.author.name,
        website=text.author.website,
        network=text.network,
        approved=approved,
        repeats=repeats,
        age=author_ids.age(text.author.id, text.since, now),
    )


def _approved_count(text: ScreenedText) -> int:
    """Read the number of the author's approved comments that have been counted."""
    if not text.author.id:
        return 0
    row = reads.get(counter_rows.standing_key(text.site, text.author.id))
    return counter_rows.numbers_of(row).get(APPROVED, 0)
