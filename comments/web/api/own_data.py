"""The calls of `/api/v1` about the caller: sign-in, own votes, export and erasure.

Each response is meant for one person, so no cache may store it. Personal data can be read only with
the caller's token.
"""

from datetime import datetime
from typing import Annotated

import flask
import msgspec

from comments.accounts import accounts, reader_accounts
from comments.accounts.links import email_login
from comments.accounts.oidc import popup_exchange, providers
from comments.accounts.oidc.providers import OfferedProvider
from comments.domain import records
from comments.domain.crypto import keyed_hashes
from comments.moderation.policy import author_links
from comments.posting import cast_vote
from comments.sites import mail_server, site_settings
from comments.transfer import personal_data
from comments.web.api import comment_calls
from comments.web.api.callers import api_callers
from comments.web.http import context, cors, responses
from comments.web.http.decode import json_bodies, parameters, query_strings

blueprint = flask.Blueprint("own", __name__, url_prefix="/api/v1")
blueprint.before_request(comment_calls.admit)


class Assertion(parameters.Request, frozen=True):
    """A token, signed by the site, that identifies the site's reader."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=4_000)]


class AskedEntry(parameters.Request, frozen=True):
    """A mail address to sign in with.

    `proof` is a solved challenge for the purpose `sign-in`. The service requires the proof only
    under load, when many sign-in mails are requested.
    """

    email: Annotated[str, msgspec.Meta(min_length=3, max_length=254)]
    proof: str = ""


class Code(parameters.Request, frozen=True):
    """A sign-in by mail: the key of the `Pending` mail, the code from its link, and a name."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    name: str


class Voucher(parameters.Request, frozen=True):
    """A sign-in with a pop-up: the verifier, the pop-up's code, and optionally a display name."""

    verifier: Annotated[str, msgspec.Meta(min_length=43, max_length=128)]
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    name: str = ""


class OwnVotesQuery(parameters.Request, frozen=True):
    """The parameters of a list of the caller's own votes, apart from `thread` and `page`."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=cast_vote.MOST_OWN)] = cast_vote.MOST_OWN
    cursor: parameters.Cursor | msgspec.UnsetType = msgspec.UNSET


class ReaderSession(msgspec.Struct, frozen=True):
    """A reader's token, which is valid until `expires`, and the name that others see.

    `account` distinguishes the reader from other readers who use the same browser. Clients must not
    use `account` for anything else. `claimed` is the number of comments that were imported under
    the address with which the reader has just signed in, and that the reader owns.
    """

    token: str
    expires: datetime
    name: str
    account: str
    claimed: int


class Pending(msgspec.Struct, frozen=True):
    """Confirms that a mail with a link to a code was requested.

    The response is the same if no mail is sent because the address has received too many. Until
    `expires`, the reader can sign in with `key` and the code.
    """

    key: str
    expires: datetime


class EntryOffer(msgspec.Struct, frozen=True):
    """The ways to sign in to a site: by mail, or with a provider in a pop-up at `url`."""

    mail: bool
    providers: list[OfferedProvider]
    url: str


class OwnVotes(msgspec.Struct, frozen=True):
    """The caller's votes in a thread, by comment id. Send `cursor` to get the next page.

    Votes are counted some seconds after they are cast. `uncounted` contains the sums of votes that
    a comment's `score` does not contain yet, by comment id; `score` plus this number is the sum of
    all votes. `uncounted` contains comments with recent votes, starting with comments on which the
    caller voted; it is empty on later pages.
    """

    votes: dict[str, int]
    uncounted: dict[str, int]
    cursor: str | None


class Erased(msgspec.Struct, frozen=True):
    """The numbers of erased comments and votes. Repeat the call until `done` is true."""

    comments: int
    votes: int
    done: bool


class EndedClaims(msgspec.Struct, frozen=True):
    """The number of imported authors whose comments the caller no longer owns."""

    ended: int


@blueprint.post("/sites/<site:site_id>/session")
def enter(site_id: str) -> flask.Response:
    """Sign in a reader with a token that the site has signed."""
    query_strings.read(parameters.NoQuery)
    secret, now = context.settings().secret, context.now()
    sent = json_bodies.read(Assertion)
    reader = reader_accounts.of_site(sent.token, site_id, secret=secret, now=now)
    account = reader_accounts.sign_in(reader, secret=secret, now=now)
    return _reader_session(account, site_id, now)


@blueprint.get("/sites/<site:site_id>/sign-in")
def offer_entry(site_id: str) -> flask.Response:
    """List the ways to sign in to a site."""
    site = site_settings.get(site_id)
    query_strings.read(parameters.NoQuery)
    settings = context.settings()
    # Without PUBLIC_URL, a provider could not send readers back.
    offered = providers.of_site(site.id) if settings.public_url else ()
    shown = [OfferedProvider(provider.name, provider.title) for provider in offered]
    url = f"{settings.public_url}/sign-in/sites/{site.id}" if offered else ""
    return responses.fresh(EntryOffer(mail_server.sends_mail_of(site, settings), shown, url))


@blueprint.post("/sites/<site:site_id>/sign-in")
def ask_to_enter(site_id: str) -> flask.Response:
    """Send a mail with a link to a page that shows a code."""
    query_strings.read(parameters.NoQuery)
    settings, now = context.settings(), context.now()
    network = context.network()
    sent, site = json_bodies.read(AskedEntry), site_settings.get(site_id)
    key = email_login.ask(
        sent.email, site, network=network, settings=settings, now=now, proof=sent.proof
    )
    return responses.personal(Pending(key, now + email_login.TERM), 202)


@blueprint.post("/sites/<site:site_id>/sign-in/code")
def enter_by_code(site_id: str) -> flask.Response:
    """Sign in with the code that was shown on the page to which a mail linked."""
    query_strings.read(parameters.NoQuery)
    secret, now = context.settings().secret, context.now()
    sent = json_bodies.read(Code)
    site = site_settings.get(site_id)
    reader = email_login.sign_in(sent.key, sent.code, sent.name, site_id, secret=secret, now=now)
    account, address = reader
    claimed = author_links.claim(site, address, account, secret=secret, now=now)
    return _reader_session(account, site_id, now, claimed=claimed)


@blueprint.post("/sites/<site:site_id>/sign-in/provider")
def enter_by_provider(site_id: str) -> flask.Response:
    """Sign in with a verifier and the code that the pop-up returned for its challenge."""
    query_strings.read(parameters.NoQuery)
    secret, now = context.settings().secret, context.now()
    sent = json_bodies.read(Voucher)
    account = popup_exchange.redeem(
        sent.verifier, sent.code, sent.name, site_id, secret=secret, now=now
    )
    return _reader_session(account, site_id, now)


@blueprint.get("/sites/<site:site_id>/author")
@cors.personal
def export_author(site_id: str) -> flask.Response:
    """Return all data that is stored about the caller on a site."""
    site = site_settings.get(site_id)
    query_strings.read(parameters.NoQuery)
    secret, now = context.settings().secret, context.now()
    everything = personal_data.export(
        api_callers.required_caller(site).id, site.id, secret=secret, now=now
    )
    return responses.personal(everything)


@blueprint.delete("/sites/<site:site_id>/author")
def erase_author(site_id: str) -> flask.Response:
    """Erase a limited amount of the data that is stored about the caller on a site."""
    query_strings.read(parameters.NoQuery)
    author = api_callers.required_caller(site_settings.get(site_id)).id
    erased = personal_data.erase(author, now=context.now(), site=site_id)
    return responses.personal(Erased(*erased))


@blueprint.delete("/sites/<site:site_id>/claims")
def give_up_claims(site_id: str) -> flask.Response:
    """End the caller's claims of imported comments. Only a moderator can allow new ones."""
    query_strings.read(parameters.NoQuery)
    caller = api_callers.required_caller(site_settings.get(site_id))
    actor = records.Actor(caller.id, caller.name)
    ended = author_links.give_up_claims(site_id, caller.id, actor, now=context.now())
    return responses.personal(EndedClaims(ended))


@blueprint.get("/sites/<site:site_id>/votes")
@cors.personal
def list_own_votes(site_id: str) -> flask.Response:
    """List the caller's votes in a thread."""
    site = site_settings.get(site_id)
    thread, query = query_strings.read_thread(OwnVotesQuery, site)
    own_votes = cast_vote.own_votes(
        records.ThreadName(site.id, thread),
        api_callers.required_caller(site).id,
        limit=query.limit,
        cursor=query.cursor or None,
        secret=context.settings().secret,
    )
    shown = OwnVotes(own_votes.votes, own_votes.uncounted, own_votes.cursor)
    return responses.personal(shown)


def _reader_session(
    account: accounts.Account, site_id: str, now: datetime, *, claimed: int = 0
) -> flask.Response:
    """Return a token for a reader who just signed in.

    The keyed hash of the account id lets the widget distinguish readers who share a browser.
    """
    settings = context.settings()
    token = api_callers.caller_of_account(account, site_id).token(settings, now)
    known = keyed_hashes.text(
        keyed_hashes.keyed_digest(settings.secret, "reader", site_id, account.id)
    )
    shown = ReaderSession(*token, account.name, known, claimed)
    return responses.personal(shown)
