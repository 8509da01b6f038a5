"""Classifier verdicts: the answers about a comment, and a site's classifiers (pure).

A site asks its *classifiers* about its comments (`Classifier`). Each classifier is asked a
*question* about one text of one comment and gives an *answer*, which is a verdict and a reason.
This module also owns three stored formats: an event's `detail` (`ClassifiersToAsk`), a message's
`content` (`ClassifierQuestion`), and the rule of a comment that awaits answers. The rule begins
with `opinion`, an older word for an answer:

    opinion:akismet+webhook   held until both have approved it

An answer is untrusted input: an answer that does not have exactly the expected form counts as no
answer.
"""

import enum
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from comments import errors
from comments.domain import decoders, outcomes

AKISMET, WEBHOOK = "akismet", "webhook"
NAMES = (AKISMET, WEBHOOK)
MOST = len(NAMES)  # Maximum number of classifiers per site
LABELS = {AKISMET: "Akismet", WEBHOOK: "the site's own service"}
LONGEST_REASON = 300
SENDER = "sender"  # The purposes for which a sender and a classifier's secret are encrypted.
SECRET = "adviser's secret"  # noqa: S105 - the name of a purpose
_WAITS = "opinion:"


class Verdict(enum.StrEnum):
    """A classifier's verdict about a comment. Stored as text."""

    APPROVE = "approve"
    HOLD = "hold"
    SPAM = "spam"
    REJECT = "reject"


class ClassifierAnswer(msgspec.Struct, frozen=True):
    """A verdict and its reason: one line of text for moderators.

    Raises:
        errors.BadInput: the reason is too long, or is not one line of printable text.
    """

    verdict: Verdict
    reason: str = ""

    def __post_init__(self) -> None:
        if len(self.reason) > LONGEST_REASON or not self.reason.isprintable():
            raise errors.BadInput("reason", "not-one-line", limit=LONGEST_REASON)


class Classifier(msgspec.Struct, frozen=True, omit_defaults=True):
    """A service that a site asks about its comments, and the conditions for asking it.

    `secrets` are encrypted.

    If `holds` is set, a comment is held until the classifier approves it; otherwise, the comment is
    shown until the classifier objects. If the classifier does not answer, the comment is eventually
    shown if `shows` is set; otherwise, it keeps its status. The classifier receives the texts of
    signed-in authors only if `everybody` is set.
    """

    name: Literal["akismet", "webhook"]
    url: str
    secrets: tuple[str, ...]
    holds: bool = True
    shows: bool = False
    everybody: bool = False


class ClassifiersToAsk(msgspec.Struct, frozen=True, omit_defaults=True):
    """The classifiers to ask about a text, as stored in its event. `sender` is encrypted."""

    of: tuple[str, ...]
    sender: str = ""


class ClassifierQuestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of a message that asks a classifier about the text of one comment revision.

    A `correction` ("ham" or "spam") asks nothing; it reports that a moderator decided differently.
    """

    revision: int
    sender: str = ""
    correction: str = ""


class Sender(msgspec.Struct, frozen=True, array_like=True):
    """The network and browser from which a text was sent, for classifiers that need them.

    Both values are stored encrypted until the classifiers answer.
    """

    network: str = ""
    browser: str = ""


class RequestResult(NamedTuple):
    """The outcome of a request to a classifier, and the answer, if any.

    If the question was delivered but `opinion` is None, the classifier will answer later.
    """

    outcome: outcomes.Outcome
    opinion: ClassifierAnswer | None = None


def classifiers_for(classifiers: Iterable[Classifier], *, is_guest: bool) -> tuple[Classifier, ...]:
    """Return the classifiers to ask about a text by a guest or by a signed-in author."""
    return tuple(classifier for classifier in classifiers if is_guest or classifier.everybody)


def rule(names: Sequence[str]) -> str:
    """Return the rule of a comment that awaits answers."""
    return _WAITS + "+".join(names)


def awaited_classifiers(said: str) -> tuple[str, ...]:
    """Return the classifiers whose answers a rule awaits; empty for other rules."""
    return tuple(said.removeprefix(_WAITS).split("+")) if said.startswith(_WAITS) else ()


def in_words(names: Iterable[str]) -> str:
    """Return the names of classifiers as moderators see them."""
    return " and ".join(LABELS.get(name, name) for name in names)


def terms_in_words(classifier: Classifier) -> str:
    """Describe in one line the terms on which a classifier is asked."""
    when = "before a comment is shown" if classifier.holds else "while a comment is shown"
    whom = "all" if classifier.everybody else "guests'"
    then = "shown" if classifier.shows else "left to moderators"
    return f"asked {when}, about {whom} comments; if it cannot be asked, they are {then}"


def encode(value: ClassifiersToAsk | ClassifierQuestion | Sender) -> str:
    return msgspec.json.encode(value).decode()


def decode_asked(detail: str) -> ClassifiersToAsk:
    """Decode an event's detail."""
    return decoders.json(ClassifiersToAsk).decode(detail)


def decode_question(content: str) -> ClassifierQuestion:
    """Decode a message's content."""
    return decoders.json(ClassifierQuestion).decode(content)


def decode_sender(text: str) -> Sender:
    """Decode a decrypted sender; an empty text means an unknown sender."""
    return decoders.json(Sender).decode(text) if text else Sender()


def read(data: bytes) -> ClassifierAnswer:
    """Parse an answer: `{"verdict": ..., "reason": ...}`. Other fields are ignored.

    Raises:
        errors.BadInput: the data is not a valid answer.
    """
    try:
        return decoders.decode(data, ClassifierAnswer)
    except msgspec.DecodeError as error:
        raise errors.BadInput("opinion", "bad-opinion") from error
