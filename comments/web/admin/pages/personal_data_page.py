"""The data about a person: show what is stored, export it, and erase it, for owners of the service.

The page does the same as the commands `author` and `forget`. A person's data can be on several
sites, so only owners of the whole service can use the page. An owner confirms an export and an
erasure with their own password. An erasure of many comments takes several requests; each shows a
button that continues it, and repeating an interrupted request continues it too.
"""

import time

import flask
import msgspec

from comments import errors
from comments.accounts import accounts, identities
from comments.accounts.passwords import password_login
from comments.notifications import double_opt_in, reader_follows
from comments.transfer import personal_data
from comments.web.admin import site_visit
from comments.web.admin.form_types import people_forms
from comments.web.http import context
from comments.web.rendering import labels
from comments.web.sign_in import account_pages, signed_in

blueprint = site_visit.service_blueprint("personal_data", "people/data")

_SECONDS = 8.0  # Time for the steps of an erasure in one request, well below DEADLINE.
_REFUSED = (errors.BadInput, errors.Conflict, errors.NotFound, errors.TooMany, password_login.Wrong)


@blueprint.page("", people_forms.PersonSearchQuery)
def show(_owner: object, query: people_forms.PersonSearchQuery) -> flask.Response:
    """Show forms to find a person and to erase a mail address, and the person's data in numbers."""
    who = query.who.strip()
    if not who:
        return _page()
    try:
        return _page(personal_data.find_author(who, secret=_secret()), who=who)
    except errors.NotFound as error:
        return _page(who=who, error=error)


@blueprint.form("/export", people_forms.PersonalDataForm)
def export(owner: accounts.Account, sent: people_forms.PersonalDataForm) -> flask.Response:
    """Download all data about a person as JSON."""
    try:
        account_pages.confirm(owner, sent.current)
    except _REFUSED as error:
        return _page(sent.author, error=error)
    everything = personal_data.export(sent.author, secret=_secret(), now=context.now())
    content = msgspec.json.format(msgspec.json.encode(everything), indent=2)
    response = flask.Response(content, content_type="application/json")
    response.headers.set("Content-Disposition", "attachment", filename="person.json")
    return response


@blueprint.form("/erase", people_forms.PersonalDataForm)
def erase(owner: accounts.Account, sent: people_forms.PersonalDataForm) -> flask.Response:
    """Erase a person's data, as far as one request can."""
    try:
        account_pages.confirm(owner, sent.current)
        return _erase(sent.author)
    except _REFUSED as error:
        return _page(sent.author, error=error)


def _erase(author: str) -> flask.Response:
    end, count = time.monotonic() + _SECONDS, 0
    while True:
        step = personal_data.erase(author, now=context.now())
        count += step.comments + step.votes
        if step.is_done or time.monotonic() > end:
            break
    if not step.is_done:
        return _page(author, said=labels.text("admin.data-erased-some", count=count))
    reader_follows.erase(author)
    return _page(said=labels.text("admin.data-erased", count=count))


@blueprint.form("/forget", people_forms.AddressForm)
def forget(owner: accounts.Account, sent: people_forms.AddressForm) -> flask.Response:
    """Erase a mail address with its subscriptions."""
    try:
        account_pages.confirm(owner, sent.current)
        count = double_opt_in.forget(sent.email.strip(), _secret(), now=context.now())
    except _REFUSED as error:
        return _page(error=error, email=sent.email)
    said = labels.text("admin.data-forgotten", count=count)
    if accounts.by_identity(identities.of_address(sent.email.strip()), _secret()) is not None:
        said = f"{said} {labels.text('admin.data-has-account')}"
    return _page(said=said)


def _page(
    author: str = "",
    *,
    who: str = "",
    email: str = "",
    said: str = "",
    error: errors.FlatthreadError | None = None,
) -> flask.Response:
    everything = None
    if author:
        everything = personal_data.export(author, secret=_secret(), now=context.now())
    return signed_in.page(
        "admin/person_data.html",
        status=200 if error is None else signed_in.refuse_form(error),
        said=said,
        who=who or author,
        email=email,
        author=author,
        has_password=signed_in.require_account().has_password,
        found=everything,
        names=sorted({writing.name for writing in everything.comments}) if everything else [],
    )


def _secret() -> str:
    return context.settings().secret
