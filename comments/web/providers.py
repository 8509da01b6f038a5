"""Owners and moderators who sign in through a provider: the way out, and what comes of it.

A POST shows the page that leads to the provider; `windows` takes everybody in who comes back, and
hands those of the desk to `arrive`. Whoever links a provider shows his password first: a session
that was left open must not become a second way in.
"""

from datetime import UTC, datetime

import flask

from comments import errors, firstowner
from comments.accounts import journeys, linking, openid, people, providers, sessions, signing
from comments.web import admin, callers, context, forms, networks, shapes, travel

blueprint = flask.Blueprint("providers", __name__, url_prefix="/admin", template_folder="templates")
callers.guard(blueprint)
admin.offer_providers(blueprint)


class _Chosen(shapes.NoForm, frozen=True):
    """A provider, by name."""

    provider: shapes.Typed


class _Invited(_Chosen, frozen=True):
    """The key of an invitation, and what its newcomer is to be called."""

    token: shapes.Typed = ""
    name: shapes.Typed = ""


class _Linking(shapes.Confirmed, frozen=True):
    """A provider, and the password of whoever is signed in."""

    provider: shapes.Typed


class _Step(shapes.Ticket, frozen=True):
    """The code of an authenticator, and for which sign-in it is."""

    code: shapes.Typed


@blueprint.post("/sign-in/provider")
@callers.open_to_all
def sign_in() -> flask.Response:
    """Set out to sign in."""
    provider = _chosen(forms.read(_Chosen).provider)
    goal = journeys.Goal(journeys.Aim.DESK, provider.name, session=callers.cookie())
    return travel.depart(goal, provider)


@blueprint.post("/sign-in/code")
@callers.open_to_all
def show_code() -> flask.Response:
    """Sign in whom the provider named, with the code of his authenticator."""
    sent = forms.read(_Step)
    try:
        session = linking.finish(
            sent.token,
            sent.code,
            browser=callers.cookie(),
            network=networks.of_request(context.settings(), flask.request),
            secret=context.settings().secret,
            now=datetime.now(UTC),
        )
    except signing.Wrong as error:
        status = callers.status_of(error)
        problem = "This is not the code of now."
        return callers.page(
            "admin/second_step.html", status=status, problem=problem, token=sent.token
        )
    return callers.give(callers.go("admin"), session)


@blueprint.post("/welcome/provider")
@callers.open_to_all
def accept() -> flask.Response:
    """Set out to accept an invitation."""
    sent = forms.read(_Invited)
    provider = _chosen(sent.provider)
    try:
        name = people.checked_name(sent.name) if sent.name.strip() else ""
    except errors.BadInput as error:
        form = shapes.Accepted(token=sent.token, name=sent.name)
        return callers.page(
            "admin/welcome.html",
            status=callers.status_of(error),
            problem=error.message,
            sent=form,
        )
    goal = journeys.Goal(
        journeys.Aim.INVITATION,
        provider.name,
        invitation=sent.token,
        name=name,
        session=callers.cookie(),
    )
    return travel.depart(goal, provider)


@blueprint.post("/account/provider")
def link() -> flask.Response:
    """Set out to have one's account led to by a provider."""
    sent, account = forms.read(_Linking), callers.require_account()
    provider = _chosen(sent.provider)
    try:
        _confirm(account, sent.current)
    except signing.Wrong as error:
        return admin.account_page(account, error)
    goal = journeys.Goal(journeys.Aim.LINK, provider.name, account=account.id, epoch=account.epoch)
    return travel.depart(goal, provider)


@blueprint.post("/account/provider/remove")
def unlink() -> flask.Response:
    """Have one's account led to by a provider no more."""
    sent, account = forms.read(_Linking), callers.require_account()
    # Also one that is offered no more.
    provider = providers.chosen(sent.provider, providers.every())
    try:
        _confirm(account, sent.current)
    except signing.Wrong as error:
        return admin.account_page(account, error)
    linking.unlink(account.id, provider.issuer)
    session = sessions.begin(account.id, context.settings().secret, now=datetime.now(UTC))
    return callers.give(callers.go("admin/account"), session)


def arrive(goal: journeys.Goal, person: openid.Person) -> flask.Response:
    """What somebody gets who is back from a provider, and whom it named."""
    secret, now, browser = context.settings().secret, datetime.now(UTC), goal.session
    if goal.aim is journeys.Aim.LINK:
        linking.link(goal.account, goal.epoch, person, secret=secret)
        return callers.go("admin/account")
    if goal.aim is journeys.Aim.INVITATION:
        come = linking.accept(
            goal.invitation, person, goal.name, browser=browser, secret=secret, now=now
        )
        firstowner.settle(context.settings())
    else:
        come = linking.sign_in(person, browser=browser, secret=secret, now=now)
    if isinstance(come, linking.CodeAsked):
        return callers.page("admin/second_step.html", token=come.token)
    return callers.give(callers.go("admin"), come)


def _chosen(name: str) -> providers.Provider:
    return providers.chosen(name, providers.of_desk())


def _confirm(account: people.Account, password: str) -> None:
    signing.confirm(
        account.id,
        password,
        network=networks.of_request(context.settings(), flask.request),
        secret=context.settings().secret,
        now=datetime.now(UTC),
    )
