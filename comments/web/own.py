"""The calls of `/api/v1` about the caller himself: who he is, what is his, and its end.

What they answer is for one person: kept by no cache, and given to whoever holds his token.
"""

from datetime import UTC, datetime

import flask

from comments import digests, entering, personal, records, sites, voting
from comments.accounts import people, providers, readers, vouchers
from comments.web import (
    answers,
    api,
    bodies,
    context,
    cors,
    networks,
    queries,
    responses,
    shapes,
    speakers,
)

blueprint = flask.Blueprint("own", __name__, url_prefix="/api/v1")
blueprint.before_request(api.admit)


@blueprint.post("/sites/<site:site_id>/session")
def enter(site_id: str) -> flask.Response:
    """Sign somebody in whom the site's own token names."""
    queries.read(shapes.NoQuery)
    secret, now = context.settings().secret, datetime.now(UTC)
    sent = bodies.read(shapes.Assertion)
    reader = readers.of_site(sent.token, site_id, secret=secret, now=now)
    account = readers.enter(reader, secret=secret, now=now)
    return _entered(account, site_id, now)


@blueprint.get("/sites/<site:site_id>/sign-in")
def offer_entry(site_id: str) -> flask.Response:
    """How readers may sign in here."""
    site = sites.get(site_id)
    queries.read(shapes.NoQuery)
    settings = context.settings()
    # Without an address of ours nobody could come back from one.
    found = providers.of_site(site.id) if settings.public_url else ()
    shown = [providers.OfferedProvider(each.name, each.title) for each in found]
    url = f"{settings.public_url}/sign-in/sites/{site.id}" if found else ""
    return answers.fresh(responses.EntryOffer(settings.sends_mail, shown, url))


@blueprint.post("/sites/<site:site_id>/sign-in")
def ask_to_enter(site_id: str) -> flask.Response:
    """Have an address mailed a link that shows a code."""
    queries.read(shapes.NoQuery)
    settings, now = context.settings(), datetime.now(UTC)
    network = networks.of_request(settings, flask.request)
    sent, site = bodies.read(shapes.AskedEntry), sites.get(site_id)
    key = entering.ask(
        sent.email, site, network=network, settings=settings, now=now, proof=sent.proof
    )
    return answers.private(answers.fresh(responses.Pending(key, now + entering.TERM), 202))


@blueprint.post("/sites/<site:site_id>/sign-in/code")
def enter_by_code(site_id: str) -> flask.Response:
    """Sign in whoever read the code that the link of the mail showed."""
    queries.read(shapes.NoQuery)
    secret, now = context.settings().secret, datetime.now(UTC)
    sent = bodies.read(shapes.Code)
    account = entering.enter(sent.key, sent.code, sent.name, site_id, secret=secret, now=now)
    return _entered(account, site_id, now)


@blueprint.post("/sites/<site:site_id>/sign-in/provider")
def enter_by_provider(site_id: str) -> flask.Response:
    """Sign in whoever holds the verifier and the code that the window showed for it."""
    queries.read(shapes.NoQuery)
    secret, now = context.settings().secret, datetime.now(UTC)
    sent = bodies.read(shapes.Voucher)
    account = vouchers.redeem(sent.verifier, sent.code, sent.name, site_id, secret=secret, now=now)
    return _entered(account, site_id, now)


@blueprint.get("/sites/<site:site_id>/author")
@cors.personal
def export_author(site_id: str) -> flask.Response:
    """All that is held of the caller on a site: his alone, and kept by nobody."""
    site = sites.get(site_id)
    queries.read(shapes.NoQuery)
    secret, now = context.settings().secret, datetime.now(UTC)
    found = personal.export(speakers.of(site).id, site.id, secret=secret, now=now)
    return answers.private(answers.fresh(found))


@blueprint.delete("/sites/<site:site_id>/author")
def erase_author(site_id: str) -> flask.Response:
    """Erase what is held of the caller on a site, a step at a time."""
    queries.read(shapes.NoQuery)
    author = speakers.of(sites.get(site_id)).id
    erased = personal.erase(author, now=datetime.now(UTC), site=site_id)
    return answers.private(answers.fresh(responses.Erased(*erased)))


@blueprint.get("/sites/<site:site_id>/votes")
@cors.personal
def list_own_votes(site_id: str) -> flask.Response:
    """How the caller votes on comments of a thread: his alone, and kept by nobody."""
    site = sites.get(site_id)
    thread, query = queries.read_thread(shapes.OwnVotesQuery, site)
    found = voting.own(
        records.ThreadName(site.id, thread),
        speakers.of(site).id,
        limit=query.limit,
        cursor=query.cursor or None,
        secret=context.settings().secret,
    )
    return answers.private(answers.fresh(responses.OwnVotes(found.votes, found.cursor)))


def _entered(account: people.Account, site_id: str, now: datetime) -> flask.Response:
    """The token of somebody who has just shown who he is, and what tells him from others."""
    secret = context.settings().secret
    speaker = speakers.member(account, site_id)
    known = digests.text(digests.keyed(secret, "reader", site_id, account.id))
    expires = speakers.expiry(now)
    shown = responses.Session(speaker.token(), expires, account.name, known)
    return answers.private(answers.fresh(shown))
