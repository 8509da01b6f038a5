"""Ask classifiers about texts, and apply their verdicts to comments.

Classifiers' verdicts are applied in the same way as moderators' decisions. The classifier is the
actor, and the audit log receives an entry with the classifier's reason.

Invariant: A verdict is ignored if the comment has been edited or moderated since the question was
asked, so verdicts never override people
(test_classifier_requests.py::test_a_moderators_decision_during_the_request_is_not_overruled).

Duplicate, late and unsolicited verdicts are also ignored. A verdict never releases a comment that
is held for any reason other than waiting for classifiers. Like other messages, questions are sent
outside transactions, each with its own attempts (`message_sender`). If the last attempt fails, the
site's settings determine whether the comment keeps its status or is shown. Data about the sender is
stored only in the question. This data is encrypted, and it is deleted after the answer or the last
attempt.
"""

import enum
import functools
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from comments import config, errors
from comments.accounts import accounts
from comments.domain import outcomes, records
from comments.domain.crypto import encryption, guest_addresses
from comments.domain.moderation import classifier_verdicts
from comments.domain.moderation.classifier_verdicts import Verdict
from comments.domain.records import Ruling, Status
from comments.events import (
    audit_log,
    backlog,
    mail_jobs,
    message_queue,
    message_sender,
    outbox,
    retry_pauses,
    safe_http,
    webhooks,
)
from comments.moderation.classifiers import akismet, classifier_answers, registration, site_service
from comments.moderation.classifiers.classifier_answers import AnswerState, StoredAnswer
from comments.moderation.policy import rulebook
from comments.sites import mail_server, site_settings
from comments.store import reads, transactions
from comments.store.memory import per_process
from comments.store.models import comment_rows, conversion, event_rows, moderation_rows
from comments.threads import naming, thread_info
from comments.tree import status_changes, values

LIMITS = safe_http.RequestLimits(connect=3.0, total=5.0, answer=16 * 1024)
OUTBOUND = per_process.PerProcess(lambda: safe_http.HttpClient(LIMITS))
TERM = timedelta(days=7)  # Discard answers about older texts.
_VERBS = {status: verb for verb, status in records.BECOMES.items()}
_REFUSALS = {Verdict.SPAM: Status.SPAM, Verdict.REJECT: Status.REJECTED}
_NOTHING_LEFT = outcomes.Outcome(outcomes.End.DELIVERED, "nothing left to ask about")


class AnswerResult(enum.Enum):
    """The result of handling an answer."""

    DONE = enum.auto()  # The answer was stored and applied.
    KNOWN = enum.auto()  # The same verdict was already stored.
    OTHER = enum.auto()  # A different verdict was already stored.
    OVERTAKEN = enum.auto()  # The comment changed after the question, or the answer is late.


class RequestSubject(NamedTuple):
    """The subject of a question: the text of a comment on a site at one revision."""

    site: str
    comment: str
    revision: int


def channel(
    settings: config.Settings, client: safe_http.HttpClient, recipient: str, now: datetime
) -> message_sender.Recipient:
    """Return the recipient of a question queue, with the function that asks the classifier."""
    site, _, name = recipient.rpartition("/")
    is_active = site_settings.is_active(site)
    classifier = rulebook.current(site).classifier(name) if is_active else None
    if classifier is None:
        return message_sender.Recipient(message_sender.Way.GONE)
    consultant = _Consultant(settings, client, site, classifier, now)
    return message_sender.Recipient(message_sender.Way.OPEN, tell=consultant.tell)


class _Consultant:
    def __init__(
        self,
        settings: config.Settings,
        client: safe_http.HttpClient,
        site: str,
        classifier: classifier_verdicts.Classifier,
        now: datetime,
    ) -> None:
        self._settings = settings
        self._client = client
        self._site = site
        self._classifier = classifier
        self._now = now

    def tell(self, message: message_queue.Message) -> outcomes.Outcome:
        """Send a question once, store the answer, and return the outcome of the attempt."""
        question = classifier_verdicts.decode_question(message.content)
        comment_id = message.event.partition(".")[0]
        about = RequestSubject(self._site, comment_id, question.revision)
        if question.correction:
            comment = _comment_to_correct(about, self._classifier.name)
        else:
            comment = _open_comment(about, self._classifier.name, now=self._now)
        if comment is None:
            return _NOTHING_LEFT
        try:
            result = self._ask(message, question, comment)
        except errors.BadLink:
            reason = "its secret cannot be decrypted: SECRET has changed since it was stored"
            result = classifier_verdicts.RequestResult(
                outcomes.Outcome(outcomes.End.GIVE_UP, reason)
            )
        outcome = self._final_outcome(message, result.outcome)
        if question.correction:
            return outcome
        entry = self._entry(result.opinion, outcome)
        if entry is not None:
            take(about, self._classifier.name, entry, settings=self._settings, now=self._now)
        if outcome.end is outcomes.End.GIVE_UP and question.sender:
            kept = msgspec.structs.replace(question, sender="")
            message_queue.rewrite(message.id, classifier_verdicts.encode(kept))
        return outcome

    def _ask(
        self,
        message: message_queue.Message,
        question: classifier_verdicts.ClassifierQuestion,
        comment: records.Comment,
    ) -> classifier_verdicts.RequestResult:
        secrets = registration.secrets_of(self._classifier, self._settings.secret, now=self._now)
        if self._classifier.name == classifier_verdicts.AKISMET:
            return self._ask_akismet(question, comment, secrets[0])
        hook = webhooks.Hook(self._classifier.url, secrets)
        name = site_service.name(self._site, comment.id, question.revision, self._settings.secret)
        is_guest = not comment.author.id.startswith(accounts.AUTHOR)
        payload = site_service.body(
            name, comment, _thread_of(comment), is_guest=is_guest, at=message.at
        )
        return site_service.ask(self._client, hook, message.event, payload, now=self._now)

    def _ask_akismet(
        self, question: classifier_verdicts.ClassifierQuestion, comment: records.Comment, key: str
    ) -> classifier_verdicts.RequestResult:
        site, thread = site_settings.get(self._site), _thread_of(comment)
        secret = self._settings.secret
        sent = question.sender and encryption.unseal(
            question.sender, classifier_verdicts.SENDER, secret, now=self._now
        )
        page = "" if thread is None else thread_info.address(thread.url, site)
        address = guest_addresses.address(comment.author.email, secret, now=self._now)
        author = msgspec.structs.replace(comment.author, email=address)
        comment = msgspec.structs.replace(comment, author=author)
        text = akismet.AkismetComment(comment, page, classifier_verdicts.decode_sender(sent))
        account = akismet.AkismetAccount(self._classifier.url, key, f"{site.origins[0]}/")
        if question.correction:
            outcome = akismet.correct(self._client, account, text, question.correction)
            return classifier_verdicts.RequestResult(outcome)
        return akismet.check(self._client, account, text)

    def _final_outcome(
        self, message: message_queue.Message, outcome: outcomes.Outcome
    ) -> outcomes.Outcome:
        """Return an attempt's outcome, with GIVE_UP instead of RETRY after the last attempt."""
        is_last = message.attempts >= retry_pauses.MOST_ATTEMPTS
        if outcome.end is outcomes.End.RETRY and is_last:
            return outcomes.Outcome(outcomes.End.GIVE_UP, outcome.reason)
        return outcome

    def _entry(
        self, opinion: classifier_verdicts.ClassifierAnswer | None, outcome: outcomes.Outcome
    ) -> StoredAnswer | None:
        """Return the entry to store after an attempt; None if the question will be sent again."""
        if opinion is not None:
            return StoredAnswer(AnswerState.SAID, self._now, opinion.verdict, opinion.reason)
        if outcome.end is outcomes.End.DELIVERED:
            return StoredAnswer(AnswerState.LATER, self._now)
        if outcome.end is outcomes.End.GIVE_UP:
            reason = outcome.reason[: classifier_verdicts.LONGEST_REASON]
            return StoredAnswer(AnswerState.FAILED, self._now, reason=reason)
        return None


def is_from_site(
    site: str, sent: Mapping[str, str], payload: bytes, *, secret: str, now: datetime
) -> bool:
    classifier = rulebook.current(site).classifier(classifier_verdicts.WEBHOOK)
    if classifier is None:
        return False
    try:
        secrets = registration.secrets_of(classifier, secret, now=now)
    except errors.BadLink:
        return False
    return webhooks.is_signed(secrets, sent, payload, now=now)


def hear(
    site: str,
    question: str,
    opinion: classifier_verdicts.ClassifierAnswer,
    *,
    settings: config.Settings,
    now: datetime,
) -> AnswerResult:
    """Store an answer that a site's service sends later in a separate request.

    Raises:
        errors.NotFound: this question was never sent to the service.
    """
    about = RequestSubject(site, *site_service.parse_name(question, site, settings.secret))
    entry = StoredAnswer(AnswerState.SAID, now, opinion.verdict, opinion.reason)
    return take(about, classifier_verdicts.WEBHOOK, entry, settings=settings, now=now)


def take(
    about: RequestSubject,
    name: str,
    entry: StoredAnswer,
    *,
    settings: config.Settings,
    now: datetime,
) -> AnswerResult:
    """Store a classifier's answer or failure, and apply it to the comment.

    The answer is stored and applied in one transaction. Repeating the call is safe, because the
    transaction recognizes an earlier answer.
    """
    book = rulebook.current(about.site)
    actor = records.Actor(name, classifier_verdicts.LABELS[name])
    act_of = functools.cache(lambda verb: audit_log.Act(actor, verb, entry.reason))

    def body() -> _Applied:
        case, answers = _case_and_answers(about)
        if (earlier := _earlier_answer(answers, name, about)) is not None:
            return _Applied(
                AnswerResult.KNOWN if earlier.verdict is entry.verdict else AnswerResult.OTHER
            )
        if case is None or not _is_open(case.comment, answers, about, now):
            return _Applied(AnswerResult.OVERTAKEN)
        after = classifier_answers.with_entry(answers, name, entry, about.revision)
        ruling = _ruling(case, after, name, book)
        change, mail = None, None
        if ruling is not None:
            act = act_of(_VERBS[ruling.status].value)
            decision = status_changes.Decision(act, now, check=lambda _: None)
            change = status_changes.judge(about.comment, ruling, decision)
            after = msgspec.structs.replace(after, current=change.comment.revision)
            transactions.apply(*change.writes)
        elif mail_server.sends_mail(settings) and _is_left_to_moderators(case, after):
            mail = _mail(about, now)
            transactions.apply(outbox.follow_up_writes([mail]))
        transactions.apply(classifier_answers.answer_writes(about.comment, after))
        return _Applied(AnswerResult.DONE, change, "" if mail is None else mail.key.id())

    applied = transactions.transaction(body, line=about.comment)
    if applied.mail:
        backlog.tell(applied.mail)
    if applied.change is not None and applied.change.event:
        comment = applied.change.comment
        backlog.tell(applied.change.event)
        is_shown = comment.status is Status.APPROVED
        note = backlog.note_changes if is_shown else backlog.note_erasure
        note(records.ThreadName(comment.site, comment.thread))
    return applied.taken


class _Applied(NamedTuple):
    """The result of a transaction: the change to the comment, and the mail event's id, if any."""

    taken: AnswerResult
    change: values.ChangeResult | None = None
    mail: str = ""


def _case_and_answers(
    about: RequestSubject,
) -> tuple[records.Case | None, classifier_answers.StoredAnswers]:
    row, stored = reads.get_multi(
        [comment_rows.comment_key(about.comment), moderation_rows.advice_key(about.comment)]
    )
    case = None if row is None else conversion.case_record(row)
    return case, classifier_answers.decode(stored)


def _earlier_answer(
    said: classifier_answers.StoredAnswers, name: str, about: RequestSubject
) -> StoredAnswer | None:
    """Return the answer that the classifier has already given to this question."""
    entry = said.of.get(name) if said.asked == about.revision else None
    return entry if entry is not None and entry.state is AnswerState.SAID else None


def _open_comment(about: RequestSubject, name: str, *, now: datetime) -> records.Comment | None:
    """Return the comment that the question is about, or None if no answer is needed."""
    case, answers = _case_and_answers(about)
    if case is None or _earlier_answer(answers, name, about) is not None:
        return None
    comment = case.comment
    is_asked_about = comment.status in classifier_answers.ASKED_ABOUT
    return comment if is_asked_about and _is_open(comment, answers, about, now) else None


def _comment_to_correct(about: RequestSubject, name: str) -> records.Comment | None:
    """Return the comment to correct, or None if it has been edited or removed since the answer."""
    case, answers = _case_and_answers(about)
    entry = answers.of.get(name)
    if case is None or entry is None or case.comment.status is Status.RETRACTED:
        return None
    edited = case.comment.edited
    return None if edited is not None and edited > entry.at else case.comment


def _is_open(
    comment: records.Comment,
    said: classifier_answers.StoredAnswers,
    about: RequestSubject,
    now: datetime,
) -> bool:
    """Return whether answers about a comment still apply and are not too late."""
    is_old = now - (comment.edited or comment.created) > TERM
    is_here = comment.site == about.site
    return is_here and not is_old and classifier_answers.applies(said, comment, about.revision)


def _ruling(
    case: records.Case, after: classifier_answers.StoredAnswers, name: str, book: rulebook.Rulebook
) -> Ruling | None:
    """Return the ruling that follows from all answers; None if the comment keeps its status."""
    status, entry = case.comment.status, after.of[name]
    if status not in classifier_answers.ASKED_ABOUT:
        return None
    if entry.verdict in _REFUSALS:
        return Ruling(_REFUSALS[entry.verdict], name, entry.reason)
    if entry.verdict is Verdict.HOLD and status is Status.APPROVED:
        return Ruling(Status.PENDING, name, entry.reason)
    names = classifier_verdicts.awaited_classifiers(case.rule)
    if (
        status is Status.PENDING
        and names
        and all(_is_approved_by(other, after, book) for other in names)
    ):
        return Ruling(Status.APPROVED, name, entry.reason)
    return None


def _is_approved_by(
    name: str, after: classifier_answers.StoredAnswers, book: rulebook.Rulebook
) -> bool:
    """Return whether a classifier approved a comment, or failed and the site shows it anyway."""
    entry, classifier = after.of.get(name), book.classifier(name)
    if entry is None:
        return False
    if entry.state is AnswerState.FAILED:
        return classifier is not None and classifier.shows
    return entry.verdict is Verdict.APPROVE


def _is_left_to_moderators(case: records.Case, after: classifier_answers.StoredAnswers) -> bool:
    """Return whether a comment that was held for classifiers now needs a moderator's decision."""
    names = classifier_verdicts.awaited_classifiers(case.rule)
    entries = [after.of.get(name) for name in names]
    all_spoke = all(entry is not None and entry.state is not AnswerState.LATER for entry in entries)
    is_held = any(entry is not None and entry.verdict is Verdict.HOLD for entry in entries)
    return bool(names) and case.comment.status is Status.PENDING and (all_spoke or is_held)


def _mail(about: RequestSubject, now: datetime) -> event_rows.EventRow:
    """Make the mail event that notifies moderators. All answers about a text share one event."""
    event = outbox.event_id(about.comment, about.revision)
    detail = mail_jobs.encode(mail_jobs.HeldCommentMail(event))
    return outbox.follow(outbox.EventKind.MAIL, outbox.mail_id(event, "held"), detail, due=now)


def _thread_of(comment: records.Comment) -> records.Thread | None:
    """Return a comment's thread, for use in a question.

    If no published comment has set the thread's title and address, the values sent with this
    comment are used, because a classifier, like a moderator, needs all data about the comment.
    """
    row = reads.get(comment_rows.thread_key(records.ThreadName(comment.site, comment.thread)))
    if row is None:
        return None
    thread = conversion.thread_record(row)
    if thread.named_by:
        return thread
    asked = reads.get(comment_rows.comment_key(comment.id))
    details = naming.decode(asked and asked.brought)
    title, url = thread.title or details.title, thread.url or details.url
    return msgspec.structs.replace(thread, title=title, url=url)
