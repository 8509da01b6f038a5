"""Consulting: advisers outside are asked about texts, and what they say becomes of the comment.

Owns the way from a question that waits (`advice`) to one transaction of the tree, whoever is asked
and whenever he answers. There is one such way: by the verbs of moderators, with the adviser as the
actor, an entry of the audit log, and his reason.

What must stay true:

- A person has the last word: an opinion about what somebody else changed since, by an edit or by a
  decision, changes nothing. So does one that comes twice, too late, or of whom nobody asked.
- What is held for another reason than to wait for opinions is not released by any.
- Nobody is asked within a transaction, and nobody waits for the answer: questions go out like
  messages, each with attempts of its own (`sending`). When the last one failed, the comment stays
  as it is, or is shown where the site says so; moderators read why.
- What is known of the sender is in a question only, sealed, and gone when that is answered or given
  up.
"""

import enum
import functools
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from comments import (
    advice,
    advisers,
    akismet,
    audit,
    config,
    datastore,
    errands,
    errors,
    guestmail,
    messages,
    models,
    opinions,
    outbound,
    outbox,
    outcomes,
    records,
    reviews,
    rulebook,
    sealed,
    sending,
    sites,
    tasks,
    threads,
    tree,
    webhooks,
)
from comments.accounts import people
from comments.advice import Entry, State
from comments.opinions import Verdict
from comments.records import Ruling, Status, Verb

OUTBOUND = "outbound/opinions"  # under which `datastore.kept` keeps the client
LIMITS = outbound.Limits(connect=3.0, total=5.0, answer=16 * 1024)
TERM = timedelta(days=7)  # after a text was written; what is said of it later is too late
_VERBS = {
    Status.APPROVED: Verb.APPROVE,
    Status.PENDING: Verb.HOLD,
    Status.SPAM: Verb.SPAM,
    Status.REJECTED: Verb.REJECT,
}
_REFUSALS = {Verdict.SPAM: Status.SPAM, Verdict.REJECT: Status.REJECTED}
_NOTHING_LEFT = outcomes.Outcome(outcomes.End.DELIVERED, "nothing left to ask about")


class Taken(enum.Enum):
    """What came of an opinion."""

    DONE = enum.auto()  # it is noted, and the comment is what follows from it
    KNOWN = enum.auto()  # it came before
    OTHER = enum.auto()  # another one came before
    OVERTAKEN = enum.auto()  # somebody edited or decided since, or it is too late


class About(NamedTuple):
    """What a question is about: the text that came with a revision of a comment of a site."""

    site: str
    comment: str
    revision: int


def channel(
    settings: config.Settings, client: outbound.Client, recipient: str, now: datetime
) -> sending.Recipient:
    """The adviser of a queue, and how he is asked."""
    site, _, name = recipient.rpartition("/")
    adviser = rulebook.get(site).adviser(name) if site else None
    if adviser is None:
        return sending.Recipient(sending.Way.GONE)
    consultant = _Consultant(settings, client, site, adviser, now)
    return sending.Recipient(sending.Way.OPEN, tell=consultant.tell)


class _Consultant:
    """Puts questions to one adviser of a site."""

    def __init__(
        self,
        settings: config.Settings,
        client: outbound.Client,
        site: str,
        adviser: opinions.Adviser,
        now: datetime,
    ) -> None:
        self._settings = settings
        self._client = client
        self._site = site
        self._adviser = adviser
        self._now = now

    def tell(self, message: messages.Message) -> outcomes.Outcome:
        """Put a question once, and take the answer; how that ended."""
        question = opinions.decode_question(message.content)
        comment_id = message.event.partition(".")[0]
        about = About(self._site, comment_id, question.revision)
        if question.correction:
            comment = _corrected(about, self._adviser.name)
        else:
            comment = _open(about, self._adviser.name, now=self._now)
        if comment is None:
            return _NOTHING_LEFT
        try:
            heard = self._ask(message, question, comment)
        except errors.BadLink:
            reason = "its secret cannot be read: SECRET is not the one it was stored under"
            heard = opinions.Heard(outcomes.Outcome(outcomes.End.GIVE_UP, reason))
        outcome = self._ended(message, heard.outcome)
        if question.correction:
            return outcome
        entry = self._entry(heard.opinion, outcome)
        if entry is not None:
            take(about, self._adviser.name, entry, settings=self._settings, now=self._now)
        if outcome.end is outcomes.End.GIVE_UP and question.sender:
            kept = msgspec.structs.replace(question, sender="")
            messages.rewrite(message.id, opinions.encode(kept))
        return outcome

    def _ask(
        self, message: messages.Message, question: opinions.Question, comment: records.Comment
    ) -> opinions.Heard:
        secrets = advisers.opened(self._adviser, self._settings.secret, now=self._now)
        if self._adviser.name == opinions.AKISMET:
            return self._ask_akismet(question, comment, secrets[0])
        hook = webhooks.Hook(self._adviser.url, secrets)
        name = reviews.name(self._site, comment.id, question.revision, self._settings.secret)
        is_guest = not comment.author.id.startswith(people.AUTHOR)
        payload = reviews.body(name, comment, _thread_of(comment), is_guest=is_guest, at=message.at)
        return reviews.ask(self._client, hook, message.event, payload, now=self._now)

    def _ask_akismet(
        self, question: opinions.Question, comment: records.Comment, key: str
    ) -> opinions.Heard:
        site, thread = sites.get(self._site), _thread_of(comment)
        secret = self._settings.secret
        sent = question.sender and sealed.unseal(
            question.sender, opinions.SENDER, secret, now=self._now
        )
        page = "" if thread is None else threads.address(thread.url, site)
        address = guestmail.address(comment.author.email, secret, now=self._now)
        author = msgspec.structs.replace(comment.author, email=address)
        comment = msgspec.structs.replace(comment, author=author)
        text = akismet.Text(comment, page, opinions.decode_sender(sent))
        account = akismet.Account(self._adviser.url, key, f"{site.origins[0]}/")
        if question.correction:
            outcome = akismet.correct(self._client, account, text, question.correction)
            return opinions.Heard(outcome)
        return akismet.check(self._client, account, text)

    def _ended(self, message: messages.Message, outcome: outcomes.Outcome) -> outcomes.Outcome:
        """How an attempt ended: the last one that fails is the end of the question."""
        is_last = message.attempts >= outbox.MOST_ATTEMPTS
        if outcome.end is outcomes.End.RETRY and is_last:
            return outcomes.Outcome(outcomes.End.GIVE_UP, outcome.reason)
        return outcome

    def _entry(self, opinion: opinions.Opinion | None, outcome: outcomes.Outcome) -> Entry | None:
        """What is to be noted of an attempt; None where another one follows."""
        if opinion is not None:
            return Entry(State.SAID, self._now, opinion.verdict, opinion.reason)
        if outcome.end is outcomes.End.DELIVERED:
            return Entry(State.LATER, self._now)
        if outcome.end is outcomes.End.GIVE_UP:
            return Entry(State.FAILED, self._now, reason=outcome.reason[: opinions.LONGEST_REASON])
        return None


def is_from_site(
    site: str, sent: Mapping[str, str], payload: bytes, *, secret: str, now: datetime
) -> bool:
    """Whether a message that came in is signed by the service that a site asks."""
    adviser = rulebook.get(site).adviser(opinions.WEBHOOK)
    if adviser is None:
        return False
    try:
        secrets = advisers.opened(adviser, secret, now=now)
    except errors.BadLink:
        return False
    return webhooks.is_signed(secrets, sent, payload, now=now)


def hear(
    site: str, question: str, opinion: opinions.Opinion, *, settings: config.Settings, now: datetime
) -> Taken:
    """Take an opinion that a site's service gives later, of its own accord.

    Raises:
        errors.NotFound: the question is none that was put to it.
    """
    about = About(site, *reviews.named(question, site, settings.secret))
    entry = Entry(State.SAID, now, opinion.verdict, opinion.reason)
    return take(about, opinions.WEBHOOK, entry, settings=settings, now=now)


def take(
    about: About, name: str, entry: Entry, *, settings: config.Settings, now: datetime
) -> Taken:
    """Note what an adviser said, or that he could not be asked, and do what follows from it.

    One transaction, and safe to repeat: what was said before is recognised.
    """
    book = rulebook.get(about.site)
    act_of = functools.cache(lambda verb: audit.Act(_actor(name), verb, entry.reason))

    def body() -> _Applied:
        row, stored = datastore.get_multi(
            [models.comment_key(about.comment), models.advice_key(about.comment)]
        )
        said = advice.read(stored)
        earlier = said.of.get(name) if said.asked == about.revision else None
        if earlier is not None and earlier.state is State.SAID:
            return _Applied(Taken.KNOWN if earlier.verdict is entry.verdict else Taken.OTHER)
        case = None if row is None else models.case_record(row)
        if case is None or not _is_open(case.comment, said, about, now):
            return _Applied(Taken.OVERTAKEN)
        after = advice.with_entry(said, name, entry, about.revision)
        ruling = _ruling(case, after, name, book)
        change, mail = None, None
        if ruling is not None:
            act = act_of(_VERBS[ruling.status].value)
            change = tree.judge(about.comment, ruling, tree.Decision(act, now, _unchecked))
            after = msgspec.structs.replace(after, stands=change.comment.revision)
            datastore.apply(*change.writes)
        elif settings.sends_mail and _is_left_to_moderators(case, after):
            mail = _mail(about, now)
            datastore.apply(outbox.written([mail]))
        datastore.apply(advice.written(about.comment, after))
        return _Applied(Taken.DONE, change, "" if mail is None else mail.key.id())

    applied = datastore.transaction(body, line=about.comment)
    _announce(applied)
    return applied.taken


class _Applied(NamedTuple):
    """What a transaction did: the change of the comment, and the event of mail, if any."""

    taken: Taken
    change: tree.Change | None = None
    mail: str = ""


def _announce(applied: _Applied) -> None:
    if applied.mail:
        tasks.tell(applied.mail)
    if applied.change is not None and applied.change.event:
        comment = applied.change.comment
        tasks.tell(applied.change.event)
        is_shown = comment.status is Status.APPROVED
        note: Callable[[records.ThreadName], None] = tasks.changed if is_shown else tasks.erased
        note(records.ThreadName(comment.site, comment.thread))


def _unchecked(_case: records.Case) -> None:
    """Everything was looked at before."""


def _open(about: About, name: str, *, now: datetime) -> records.Comment | None:
    """The comment of a question that is still to be asked; None where there is nothing to ask."""
    row, stored = datastore.get_multi(
        [models.comment_key(about.comment), models.advice_key(about.comment)]
    )
    if row is None:
        return None
    comment, said = models.comment_record(row), advice.read(stored)
    earlier = said.of.get(name) if said.asked == about.revision else None
    is_answered = earlier is not None and earlier.state is State.SAID
    if is_answered or comment.status not in advice.ASKED_ABOUT:
        return None
    return comment if _is_open(comment, said, about, now) else None


def _corrected(about: About, name: str) -> records.Comment | None:
    """The comment that an adviser is to be corrected about; None if its text is another or gone."""
    row, stored = datastore.get_multi(
        [models.comment_key(about.comment), models.advice_key(about.comment)]
    )
    entry = advice.read(stored).of.get(name)
    comment = None if row is None else models.comment_record(row)
    if comment is None or entry is None or comment.status is Status.RETRACTED:
        return None
    was_edited_since = comment.edited is not None and comment.edited > entry.at
    return None if was_edited_since else comment


def _is_open(comment: records.Comment, said: advice.Said, about: About, now: datetime) -> bool:
    """Whether opinions still have a say about a comment."""
    is_old = now - (comment.edited or comment.created) > TERM
    is_here = comment.site == about.site
    return is_here and not is_old and advice.applies(said, comment, about.revision)


def _ruling(
    case: records.Case, after: advice.Said, name: str, book: rulebook.Book
) -> Ruling | None:
    """What follows for a comment from what was said of it; None where it stays what it is."""
    status, entry = case.comment.status, after.of[name]
    if status not in advice.ASKED_ABOUT:
        return None
    if entry.verdict in _REFUSALS:
        return Ruling(_REFUSALS[entry.verdict], name, entry.reason)
    if entry.verdict is Verdict.HOLD and status is Status.APPROVED:
        return Ruling(Status.PENDING, name, entry.reason)
    names = opinions.awaited(case.rule)
    if status is Status.PENDING and names and all(_lets(each, after, book) for each in names):
        return Ruling(Status.APPROVED, name, entry.reason)
    return None


def _lets(name: str, after: advice.Said, book: rulebook.Book) -> bool:
    """Whether an adviser has said that a comment may be shown, or need not be heard."""
    entry, adviser = after.of.get(name), book.adviser(name)
    if entry is None:
        return False
    if entry.state is State.FAILED:
        return adviser is not None and adviser.shows
    return entry.verdict is Verdict.APPROVE


def _is_left_to_moderators(case: records.Case, after: advice.Said) -> bool:
    """Whether a comment that waited for opinions waits for a person from now on."""
    names = opinions.awaited(case.rule)
    entries = [after.of.get(each) for each in names]
    all_spoke = all(each is not None and each.state is not State.LATER for each in entries)
    is_held = any(each is not None and each.verdict is Verdict.HOLD for each in entries)
    return bool(names) and case.comment.status is Status.PENDING and (all_spoke or is_held)


def _mail(about: About, now: datetime) -> models.Event:
    """The event that tells moderators of it: one for a text, however many opinions there are."""
    event = outbox.event_id(about.comment, about.revision)
    detail = errands.encode(errands.Held(event))
    return outbox.follow(outbox.Kind.MAIL, outbox.mail_id(event, "held"), detail, due=now)


def _actor(name: str) -> records.Actor:
    return records.Actor(name, opinions.LABELS[name])


def _thread_of(comment: records.Comment) -> records.Thread | None:
    """The thread of a comment that somebody is asked about.

    Where no comment that readers see has named it, the question tells what this one says of it:
    who judges a comment has to know all of it, as a moderator does.
    """
    row = datastore.get(models.thread_key(records.ThreadName(comment.site, comment.thread)))
    if row is None:
        return None
    thread = models.thread_record(row)
    if thread.named_by:
        return thread
    asked = datastore.get(models.comment_key(comment.id))
    said = tree.brought(asked and asked.brought)
    title, url = thread.title or said.title, thread.url or said.url
    return msgspec.structs.replace(thread, title=title, url=url)
