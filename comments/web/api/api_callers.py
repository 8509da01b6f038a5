"""Who speaks to the API: a guest by his own token, or somebody with an account.

A guest is known by his token alone. An account's token is good while the account is there and its
`epoch` is the token's: one look-up, before anything is changed. His comments are of the author
"a:..." and bear the account's name, whatever the call says of one.
"""

from datetime import datetime
from typing import NamedTuple

import flask

from comments import config
from comments.accounts import accounts
from comments.domain import records, roles
from comments.errors import NotFound
from comments.sites import site_settings
from comments.tree import ordered_query
from comments.web.api import api_tokens
from comments.web.http import context, problems


class Speaker(NamedTuple):
    """Whoever holds a token of a site. `id` is the author id of his comments there.

    `name`, `epoch` and `since`, when it was made, are an account's; a guest has none of them.
    `is_staff` says that the account holds a role on the site.
    """

    site: str
    id: str
    name: str = ""
    epoch: str = ""
    since: datetime | None = None
    is_staff: bool = False

    def token(self, settings: config.Settings, now: datetime) -> api_tokens.Issued:
        """A token for him, dated now."""
        secret, term = settings.secret, settings.guest_token_seconds
        if not self.epoch:
            guest = api_tokens.Guest(self.site, self.id)
            return api_tokens.issue(guest, secret=secret, term=term, now=now)
        account = self.id.removeprefix(accounts.AUTHOR)
        member = api_tokens.Member(self.site, account, self.epoch)
        return api_tokens.issue(member, secret=secret, term=term, now=now)


def current() -> Speaker:
    """The caller of a change; it takes a token.

    Raises:
        errors.Unauthenticated: there is none, or it is not good.
    """
    header = flask.request.headers.get("Authorization")
    if header is None:
        raise problems.Unauthenticated("this takes the token that posting gave", code="no-token")
    # Asked for by more than one step of a request, and read once.
    if "speaker" not in flask.g:
        flask.g.speaker = _named(header)
    found: Speaker = flask.g.speaker
    return found


def on(site: records.Site) -> Speaker | None:
    """The caller of a post: known by a token of this site, or a newcomer without one.

    Raises:
        errors.Unauthenticated: the token is not good, or of another site.
    """
    return of(site) if "Authorization" in flask.request.headers else None


def of(site: records.Site) -> Speaker:
    """The caller of what takes a token of this site.

    Raises:
        errors.Unauthenticated: there is none, or it is not good here.
    """
    found = current()
    if found.site != site.id:
        raise problems.Unauthenticated("the token is of another site")
    return found


def site_of(comment_id: str, *, is_own: bool) -> records.Site:
    """The site whose pages may change a comment: where the token is from, else the comment.

    A token changes comments of its own site only (`posting`). Asking it first lets a repeated
    retraction find its way when the comment is no longer listed.
    `is_own` says that it is for its author alone.

    Raises:
        errors.Unauthenticated: there is no good token, no such comment, and it takes one: who
            lacks the token is told that, whatever he asks about.
        errors.NotFound: there is no such comment.
    """
    try:
        return site_settings.get(current().site)
    except problems.Unauthenticated as refusal:
        try:
            comment, _ = ordered_query.comment(comment_id)
        except NotFound:
            if is_own:
                raise refusal from None
            raise
        return site_settings.get(comment.site)


def member(account: accounts.Account, site: str) -> Speaker:
    """Somebody with an account, on a site."""
    is_staff = roles.has(account.grants, roles.Role.MODERATOR, site)
    return Speaker(site, account.author, account.name, account.epoch, account.created, is_staff)


def _named(header: str) -> Speaker:
    settings = context.settings()
    found = api_tokens.read(header, secret=settings.secret, term=settings.guest_token_seconds)
    if isinstance(found, api_tokens.Guest):
        return Speaker(found.site, found.id)
    account = accounts.get(found.account)
    if account is None or account.epoch != found.epoch:
        raise problems.Unauthenticated("the token has ended: sign in again", code="token-expired")
    return member(account, found.site)
