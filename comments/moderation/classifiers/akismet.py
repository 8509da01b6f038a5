"""Ask Akismet whether a comment is spam, and report when a moderator disagrees with its verdict.

This module implements version 1.1 of the Akismet protocol (akismet.com/developers): forms posted to
`comment-check`, `submit-ham` and `submit-spam`, with one-word responses.

Akismet receives only the data about the sender that it needs for a verdict: the IP address, the
browser, and the name, mail address and website that the author entered. For IPv6, the service knows
only the network, so Akismet receives the network's first address. If the network is unknown, as in
corrections, Akismet receives `NOBODY`. The API key appears only in request bodies. Akismet's advice
to discard a comment counts as an ordinary spam verdict.
"""

from datetime import UTC
from typing import NamedTuple
from urllib.parse import urlencode

from comments.domain import outcomes, records
from comments.domain.languages import catalogue
from comments.domain.moderation import classifier_verdicts
from comments.events import safe_http, webhooks

ADDRESS = "https://rest.akismet.com/1.1"
NOBODY = "127.0.0.1"
_ANSWERS = {
    b"true": classifier_verdicts.Verdict.SPAM,
    b"false": classifier_verdicts.Verdict.APPROVE,
}
_HEADERS = {
    "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
    "User-Agent": "Flatthread",
}


class AkismetAccount(NamedTuple):
    """The service's address, the API key, and the address of the website's front page."""

    url: str
    key: str
    blog: str


class AkismetComment(NamedTuple):
    """A comment, the address of its page, and the known data about its sender."""

    comment: records.Comment
    page: str
    sender: classifier_verdicts.Sender


def check(
    client: safe_http.HttpClient, account: AkismetAccount, text: AkismetComment
) -> classifier_verdicts.RequestResult:
    """Ask in one request whether a comment is spam."""
    outcome, answer = _send(client, account, text, "comment-check")
    if answer is None or outcome.end is not outcomes.End.DELIVERED:
        return classifier_verdicts.RequestResult(outcome)
    verdict = None if answer.is_cut else _ANSWERS.get(answer.body.strip())
    if verdict is None:
        # Akismet gives the same response if the key is invalid. Retry, because the owner may
        # correct the key.
        reason = catalogue.ENGLISH.text("reasons.akismet-unclear")
        return classifier_verdicts.RequestResult(outcomes.Outcome(outcomes.End.RETRY, reason))
    is_sure = answer.headers.get("x-akismet-pro-tip", "").strip().lower() == "discard"
    is_discard = is_sure and verdict is classifier_verdicts.Verdict.SPAM
    reason = catalogue.ENGLISH.text("reasons.akismet-discard") if is_discard else ""
    return classifier_verdicts.RequestResult(
        outcome, classifier_verdicts.ClassifierAnswer(verdict, reason)
    )


def correct(
    client: safe_http.HttpClient, account: AkismetAccount, text: AkismetComment, correction: str
) -> outcomes.Outcome:
    """Report in one request that a moderator considers a comment "ham" or "spam"."""
    return _send(client, account, text, f"submit-{correction}")[0]


def _send(
    client: safe_http.HttpClient, account: AkismetAccount, text: AkismetComment, call: str
) -> tuple[outcomes.Outcome, safe_http.HttpResponse | None]:
    fields = {name: value for name, value in _fields(account, text).items() if value}
    url = f"{account.url.rstrip('/')}/{call}"
    return webhooks.post(client, url, urlencode(fields).encode(), _HEADERS)


def _fields(account: AkismetAccount, text: AkismetComment) -> dict[str, str]:
    comment, author = text.comment, text.comment.author
    written = comment.edited or comment.created
    return {
        "api_key": account.key,
        "blog": account.blog,
        "blog_charset": "UTF-8",
        "user_ip": _address(text.sender.network),
        "user_agent": text.sender.browser,
        "permalink": text.page,
        "comment_type": "comment" if comment.parent is None else "reply",
        "comment_author": author.name,
        "comment_author_email": author.email,
        "comment_author_url": author.website,
        "comment_content": comment.body,
        "comment_date_gmt": written.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "recheck_reason": "edit" if comment.edited else "",
    }


def _address(network: str) -> str:
    """Return the first address of a network, or `NOBODY` if the network is unknown."""
    address = network.partition("/")[0]
    return address if "." in address or ":" in address else NOBODY
