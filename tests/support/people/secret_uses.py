"""The uses of the secret: each creates a value under one secret and presents it to a service."""

import dataclasses
import re
from collections.abc import Callable
from typing import NamedTuple

import flask
import msgspec
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config, errors, setting_values
from comments.accounts import accounts, identities, site_keys
from comments.accounts.links import address_links, invitations, one_time_links
from comments.accounts.oidc import oidc_client, popup_exchange, providers
from comments.accounts.passwords import credentials, totp
from comments.domain import records
from comments.domain.crypto import encryption, secret_rotation
from comments.domain.moderation import classifier_verdicts, staff_notices
from comments.events import audit_log, safe_http
from comments.moderation import decisions
from comments.moderation.classifiers import registration, site_service
from comments.notifications import (
    double_opt_in,
    moderation_links,  # fmt: skip
    subscriptions,
)
from comments.notifications.staff import staff_links
from comments.sites import mail_server, site_settings, turnstile_settings
from comments.store import transactions
from comments.web.api.callers import api_tokens
from comments.web.sign_in import signed_in
from tests.support.people import (
    account_holders,
    admin_forms,
    api_requests,
    proof_solver,
    provider_login,
    site_tokens,
)
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import OWN, send

NEW = "another secret of the tests, as long as it should be"
ROTATED, ALONE = secret_rotation.Secret(NEW, SECRET), secret_rotation.Secret(NEW)
ADDRESS = "ann@example.org"
BOSS = "boss@demo.example"


@dataclasses.dataclass
class Service:
    """A service that runs with one secret."""

    secret: str
    app: flask.Flask

    @property
    def client(self) -> FlaskClient:
        return self.app.test_client()

    def signed_in(self, token: str) -> FlaskClient:
        client = self.app.test_client()
        client.set_cookie(signed_in.COOKIE, token)
        return client


class Services(NamedTuple):
    """Services on one store: before the secret changes, after it, and without the old secret."""

    before: Service
    rotated: Service
    alone: Service


# A `Use` creates a value under the old secret. Its `Shown` presents the value and returns the
# response, or whether the service accepted the value.
Shown = Callable[[Service], TestResponse | bool]
Use = Callable[[Service], Shown]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def guest_token(before: Service) -> Shown:
    posted = api_requests.post(before.client)
    one = api_requests.ONE + posted["comment"]["id"]
    return lambda service: service.client.delete(one, headers=api_requests.bearer(posted))


def account_token(before: Service) -> Shown:
    ann = account_holders.account("ann")
    token = api_tokens.sign(api_tokens.Member("demo", ann.id, ann.epoch), secret=before.secret)
    path = "/api/v1/sites/demo/author"
    return lambda service: service.client.get(path, headers=bearer(token))


def session(before: Service) -> Shown:
    token = account_holders.session(account_holders.account("ann", OWNER).id).token
    return lambda service: service.signed_in(token).get("/admin/account")


def form(before: Service) -> Shown:
    """Use a form that was open when the secret changed."""
    ann = account_holders.account("ann", OWNER)
    token = account_holders.session(ann.id).token
    form = admin_forms.token_of(before.signed_in(token))
    path = "/admin/account/authenticator/remove"
    return lambda service: send(service.signed_in(token), path, form=form, current=PASSWORD)


def cursor(before: Service) -> Shown:
    for _ in range(2):
        api_requests.post(before.client)
    cursor = api_requests.answer(before.client.get(f"{api_requests.THREAD}&limit=1"))["cursor"]
    return lambda service: service.client.get(f"{api_requests.THREAD}&limit=1&cursor={cursor}")


def invitation(before: Service) -> Shown:
    token = account_holders.invite(OWNER, address=ADDRESS, now=now())
    form = {"name": "Ann", "login": "ann", "password": PASSWORD}
    return lambda service: send(service.client, "/admin/welcome", token=token, **form)


def reset(before: Service) -> Shown:
    token = admin_forms.reset_of(account_holders.account("ann", OWNER))
    sent = {"token": token, "password": "another password"}
    return lambda service: send(service.client, "/admin/reset", **sent)


def second_factor(before: Service) -> Shown:
    ann, key = account_holders.account("ann", OWNER), totp.secret()
    credentials.set_totp(ann.id, key, 0, account_holders.cause(now(), secret=before.secret))
    code = totp.code(key, int(now().timestamp()) // totp.STEP)
    sent = {"login": "ann", "password": PASSWORD, "code": code}
    return lambda service: send(service.client, "/admin/sign-in", **sent)


def sign_in_by_address(before: Service) -> Shown:
    account_holders.account("ann", OWNER, mail=ADDRESS)
    sent = {"login": ADDRESS.upper(), "password": PASSWORD}
    return lambda service: send(service.client, "/admin/sign-in", **sent)


def requested_link(before: Service) -> tuple[str, str]:
    """Request a sign-in link; return the requesting page's key and the link."""
    key = one_time_links.new_token()
    address = encryption.seal(ADDRESS, "sign-in link", before.secret, now=now())
    content = msgspec.json.encode({"site": "demo", "content": address}).decode()
    issued = one_time_links.issue_writes(
        key,
        one_time_links.LinkPurpose.SIGN_IN,
        content,
        before.secret,
        now=now(),
        term=invitations.TERM,
    )
    transactions.transaction(lambda: transactions.apply(issued))
    link = msgspec.json.encode([key, "demo", ADDRESS]).decode()
    return key, encryption.seal(link, "sign-in link", before.secret, now=now())


def code_of(service: Service, link: str) -> str:
    shown = service.client.post("/sign-in", data={"token": link}, headers=OWN)
    found = re.search(r">([a-z2-7]{4} [a-z2-7]{4})<", shown.text)
    return found[1] if found else ""


def enter(service: Service, key: str, code: str) -> TestResponse:
    sent = {"key": key, "code": code, "name": "Ann"}
    return service.client.post("/api/v1/sites/demo/sign-in/code", json=sent)


def sign_in_link(before: Service) -> Shown:
    key, link = requested_link(before)
    return lambda service: enter(service, key, code_of(service, link))


def sign_in_code(before: Service) -> Shown:
    key, link = requested_link(before)
    code = code_of(before, link)
    assert code
    return lambda service: enter(service, key, code)


def popup_code(before: Service) -> Shown:
    person = oidc_client.ProviderUser(
        identities.of_provider("oidc/https://acme.example", "ann"), "Ann"
    )
    challenge = provider_login.challenge_of()
    code = popup_exchange.issue(person, "demo", challenge, secret=before.secret, now=now())
    sent = {"verifier": provider_login.VERIFIER, "code": code, "name": "Ann"}
    path = "/api/v1/sites/demo/sign-in/provider"
    return lambda service: service.client.post(path, json=sent)


def link(before: Service) -> str:
    request = double_opt_in.SubscriptionRequest(ADDRESS, "demo", "", "g:ann", replies=True)
    text = msgspec.json.encode(request).decode()
    return encryption.seal(text, "confirm", before.secret, now=now())


def confirmed(service: Service, token: str) -> TestResponse:
    return service.client.post("/subscriptions/confirm", data={"token": token})


def form_token_of(service: Service, link: str) -> str:
    page = service.client.get(f"/subscriptions/confirm?token={link}").text
    found = re.search(r'name="token"[^>]* value="([^"]+)"', page)
    return found[1] if found else ""


def confirmation(before: Service) -> Shown:
    url = link(before)
    return lambda service: confirmed(service, form_token_of(service, url))


def form_token(before: Service) -> Shown:
    """Use a confirmation page that was open when the secret changed."""
    token = form_token_of(before, link(before))
    assert token
    return lambda service: confirmed(service, token)


def unsubscribing(before: Service) -> Shown:
    link = double_opt_in.unsubscribe_link(
        double_opt_in.Unsubscription("a" * 26, ("replies:b",)), before.secret
    )
    return lambda service: service.client.post(f"/subscriptions/unsubscribe?token={link}")


def moderation_link(before: Service) -> Shown:
    site_settings.change("demo", moderators=[BOSS])
    posted = api_requests.post(before.client)["comment"]["id"]
    actor = records.Actor("cli", "Ada")
    held = decisions.decide("demo", posted, records.Verb.HOLD, actor, now=now())
    link = moderation_links.link(held, BOSS, secret=before.secret, now=now())
    return lambda service: service.client.get(f"/decisions?token={link}")


def address_link(before: Service) -> Shown:
    ann = account_holders.account("ann", OWNER)
    session = account_holders.session(ann.id).token
    cause = account_holders.cause(now(), secret=before.secret)
    token = address_links.link_key(ann, ADDRESS, cause)
    return lambda service: send(service.signed_in(session), "/admin/address", token=token)


def staff_link(before: Service) -> Shown:
    who = staff_notices.StaffRecipient(BOSS, staff_notices.NoticeChoice.HELD)
    link = staff_links.link("demo", who, secret=before.secret, now=now())
    return lambda service: service.client.post(f"/notices/unsubscribe?token={link}")


def proof(before: Service) -> Shown:
    site_settings.change("demo", guard={"proof_of_work": 10})
    proof = proof_solver.proof(before.client)
    sent = {"name": "Ann", "body": "Hello", "proof": proof}
    return lambda service: service.client.post(api_requests.THREAD, json=sent)


def question(before: Service) -> Shown:
    name = site_service.name("demo", "a" * 26, 1, before.secret)

    def shown(service: Service) -> bool:
        try:
            return site_service.parse_name(name, "demo", service.secret) == ("a" * 26, 1)
        except errors.NotFound:
            return False

    return shown


def site_token(before: Service) -> Shown:
    token = site_tokens.token(site_tokens.share())
    path = "/api/v1/sites/demo/session"
    return lambda service: service.client.post(path, json={"token": token})


def opens(open_it: Callable[[str], object]) -> Shown:
    def shown(service: Service) -> bool:
        try:
            open_it(service.secret)
        except errors.BadLink:
            return False
        return True

    return shown


def by(service: Service, settings: config.Settings = provider_login.SETTINGS) -> registration.By:
    changed = dataclasses.replace(settings, secret=service.secret)
    return registration.By(records.Actor("cli", "Ada"), now(), changed)


def adviser_secret(before: Service) -> Shown:
    away = safe_http.HttpClient(resolver=lambda _host: ["93.184.215.14"])
    url = "https://review.example/in"
    registration.set_webhook("demo", url, registration.Terms(holds=False), by(before), away)
    return opens(
        lambda secret: registration.secrets_of(registration.every("demo")[0], secret, now=now())
    )


def turnstile_secret(before: Service) -> Shown:
    given = turnstile_settings.TurnstileInput("sitekey", "s3cret")
    turnstile_settings.set_up("demo", given, settings=by(before).settings, now=now())

    def opened(secret: str) -> None:
        asked = site_settings.get("demo").turnstile
        assert asked is not None
        assert encryption.unseal(asked.secret, "turnstile", secret, now=now()) == "s3cret"

    return opens(opened)


def site_key(before: Service) -> Shown:
    site_tokens.share()
    return opens(
        lambda secret: site_keys.verification_key(site_keys.every("demo")[0], secret, now=now())
    )


def mail_server_password(before: Service) -> Shown:
    given = mail_server.MailServer(
        security=setting_values.Security.TLS, host="mail.example", port=465,
        sender=BOSS, url="https://comments.example", user="ann", password="s3cret",
    )  # fmt: skip
    server, _ = mail_server.check(given, config.Settings(before.secret), now=now())
    mail_server.save(
        server, audit_log.Noted(audit_log.Act(records.Actor("cli", "Ada"), "set-mail"), now())
    )

    def opened(secret: str) -> None:
        if mail_server.apply(config.Settings(secret)).smtp is None:
            raise errors.BadLink

    return opens(opened)


def provider_secret(before: Service) -> Shown:
    given = providers.Registration("acme", "Acme", "https://acme.example", "client", "s3cret")
    providers.add(providers.make(given, before.secret, now=now()))
    return opens(lambda secret: providers.client_secret(providers.every()[0], secret, now=now()))


def account_address(before: Service) -> Shown:
    ann = account_holders.account("ann", mail=ADDRESS)

    def opened(secret: str) -> None:
        found = accounts.get(ann.id)
        assert found is not None
        assert accounts.address_of(found, secret, now=now()) == ADDRESS

    return opens(opened)


def subscriber(before: Service) -> str:
    who = double_opt_in.subscriber_of(ADDRESS, before.secret)
    address = encryption.seal(ADDRESS, "address", before.secret, now=now())
    wanted = subscriptions.SubscriptionTarget("demo", "", "g:ann", replies=True)
    subscriptions.subscribe(who, address, wanted, now=now())
    return who


def subscriber_address(before: Service) -> Shown:
    who = subscriber(before)

    def opened(secret: str) -> None:
        stored = subscriptions.address_of(who)
        assert double_opt_in.address(stored, secret=secret, now=now()) == ADDRESS

    return opens(opened)


def sender(before: Service) -> Shown:
    text = encryption.seal("a network", classifier_verdicts.SENDER, before.secret, now=now())
    return opens(
        lambda secret: encryption.unseal(text, classifier_verdicts.SENDER, secret, now=now())
    )


def is_accepted(answer: TestResponse | bool) -> bool:
    if isinstance(answer, bool):
        return answer
    return answer.status_code < 400 and "/admin/sign-in" not in (answer.location or "")


CARRIED: list[Use] = [
    guest_token, account_token, session, form, cursor, invitation, reset, second_factor,
    sign_in_by_address, sign_in_link, sign_in_code, popup_code, confirmation, form_token,
    unsubscribing, address_link, staff_link, moderation_link, proof, question, site_token, sender,
]  # fmt: skip
STORED: list[Use] = [
    second_factor, adviser_secret, turnstile_secret, mail_server_password, site_key,
    provider_secret,
    account_address, sign_in_by_address, subscriber_address,
]  # fmt: skip
USES = list(dict.fromkeys([*CARRIED, *STORED]))
CARRIED_BY_CLIENTS = [
    guest_token,
    cursor,
    moderation_link,
    staff_link,
    proof,
    account_token,
    unsubscribing,
]
