"""Recognize the caller of the API: a guest or an account, identified by a token.

A guest is known only by the token; the service stores nothing else about a guest. An account's
token is valid while the account exists and has the same `epoch` as the token. This check costs one
read, and takes place before the call changes anything. Comments by an account have the author id
"a:..." and the account's name, even if the call gives a different name.
"""

from datetime import datetime
from typing import NamedTuple

import flask

from comments import config
from comments.accounts import accounts
from comments.domain import records
from comments.domain.moderation import roles
from comments.errors import NotFound
from comments.moderation import review_queue
from comments.sites import site_settings
from comments.tree.lists import listed_comments
from comments.web.api.callers import api_tokens
from comments.web.http import context, problems


class Speaker(NamedTuple):
    """A caller with a token for a site.

    `id` is the author id of the caller's comments on that site.

    Only accounts have `name`, `epoch` and `since`, which is the time when the account was created.
    `is_staff` is true if the account has a role on the site.
    """

    site: str
    id: str
    name: str = ""
    epoch: str = ""
    since: datetime | None = None
    is_staff: bool = False

    def token(self, settings: config.Settings, now: datetime) -> api_tokens.Issued:
        """Return a new token for the caller, issued now."""
        secret, term = settings.secret, settings.guest_token_seconds
        whose: api_tokens.Guest | api_tokens.Member = api_tokens.Guest(self.site, self.id)
        if self.epoch:
            account = self.id.removeprefix(accounts.AUTHOR)
            whose = api_tokens.Member(self.site, account, self.epoch)
        return api_tokens.issue(whose, secret=secret, term=term, now=now)


def current() -> Speaker:
    """Return the caller of a request that requires a token.

    Raises:
        problems.Unauthenticated: there is no token, or it is not valid.
    """
    header = flask.request.headers.get("Authorization")
    if header is None:
        raise problems.Unauthenticated("no-token")
    # Several steps of a request need the caller, so the token is verified only once.
    if "speaker" not in flask.g:
        flask.g.speaker = _caller_of_token(header)
    speaker: Speaker = flask.g.speaker
    return speaker


def optional_caller(site: records.Site) -> Speaker | None:
    """Return the caller if the request has a token for this site; None if it has no token.

    Raises:
        problems.Unauthenticated: the token is not valid, or is for a different site.
    """
    return required_caller(site) if "Authorization" in flask.request.headers else None


def required_caller(site: records.Site) -> Speaker:
    """Return the caller of a request that requires a token for this site.

    Raises:
        problems.Unauthenticated: there is no token, or it is not valid for this site.
    """
    speaker = current()
    if speaker.site != site.id:
        raise problems.Unauthenticated("token-of-other-site")
    return speaker


def site_of_comment(comment_id: str) -> records.Site | None:
    """Return the site of a comment, even if readers cannot see it; None if it does not exist."""
    cases = review_queue.cases([comment_id])
    return next((site_settings.get(case.comment.site) for case in cases.values()), None)


def site_of(comment_id: str, *, is_own: bool) -> records.Site:
    """Return the site whose pages may change a comment: the token's site or the comment's site.

    A token can change only comments on its own site (`posting`). The token's site takes precedence,
    so that retracting a comment again succeeds even if the comment is no longer listed. With
    `is_own`, only the author may make this call.

    Raises:
        problems.Unauthenticated: the comment does not exist, and the call requires a token but has
            no valid token. Without a token, callers cannot find out which comments exist.
        errors.NotFound: the comment does not exist, and the call requires no token.
    """
    try:
        return site_settings.current(current().site)
    except problems.Unauthenticated as refusal:
        try:
            comment = listed_comments.by_id(comment_id)
        except NotFound:
            if is_own:
                raise refusal from None
            raise
        return site_settings.current(comment.site)


def caller_of_account(account: accounts.Account, site: str) -> Speaker:
    """Return the caller for an account on a site."""
    is_staff = roles.has(account.grants, roles.Role.MODERATOR, site)
    return Speaker(site, account.author, account.name, account.epoch, account.created, is_staff)


def _caller_of_token(header: str) -> Speaker:
    settings = context.settings()
    claims = api_tokens.read(header, secret=settings.secret, term=settings.guest_token_seconds)
    if isinstance(claims, api_tokens.Guest):
        return Speaker(claims.site, claims.id)
    account = accounts.get(claims.account)
    if account is None or account.epoch != claims.epoch:
        raise problems.Unauthenticated("token-expired")
    return caller_of_account(account, claims.site)
