"""Owners register a site's classifiers with a command or in the admin console."""

import re
from collections.abc import Callable, Iterator

import click.testing
import flask
import pytest

from comments import errors
from comments.domain import records
from comments.events import audit_log, safe_http
from comments.moderation.classifiers import registration
from comments.moderation.classifiers.registration import Terms
from comments.moderation.policy import rulebook
from comments.store import connection, reads
from tests.support.outside import classifier_site
from tests.support.outside.classifier_site import Service, say
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, moderator
from tests.support.people.console_browser import DESK, Desk
from tests.support.threads import sample_threads

Run = Callable[..., click.testing.Result]
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+")


@pytest.fixture
def service(
    open_store: connection.Store, store: connection.Store, site: records.Site
) -> Iterator[Service]:
    with classifier_site.serving(open_store) as made:
        yield made


@pytest.fixture
def run(app: flask.Flask) -> Run:
    runner = app.test_cli_runner()
    return lambda *arguments, **more: runner.invoke(args=arguments, **more)


@pytest.fixture
def owner(app: flask.Flask, service: Service) -> Desk:
    account_holders.account("ann", OWNER)
    return Desk(app, "ann")


def stored() -> str:
    return str(list(reads.fetch(reads.Query("Rulebook"))))


def test_a_classifiers_secret_is_shown_once_and_stored_encrypted(
    service: Service, site: records.Site
) -> None:
    by = service.by()
    made = registration.set_webhook("demo", service.receiver.url, Terms(), by, service.client)
    again = registration.set_webhook(
        "demo", service.receiver.url, Terms(holds=False), by, service.client
    )
    assert (SECRET.fullmatch(made) is not None, again) == (True, "")
    (found,) = registration.every("demo")
    assert registration.secrets_of(found, sample_threads.SETTINGS.secret, now=service.now) == (
        made,
    )
    assert (found.holds, made in stored()) == (False, False)
    registration.remove("demo", "webhook", by)
    assert registration.every("demo") == ()
    with pytest.raises(errors.NotFound):
        registration.remove("demo", "webhook", by)
    with pytest.raises(errors.NotFound):
        registration.rotate("demo", by, keeps_old=True)
    with pytest.raises(errors.NotFound):
        registration.every("nowhere")
    said = sorted((each.verb, each.before[:5], each.after[:5]) for each in audit_log.log("demo"))
    assert said == [
        ("set-adviser", "", "asked"), ("set-adviser", "asked", ""),
        ("set-adviser", "asked", "asked"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://hooks.example/in", ["93.184.215.14"]),
        ("https://hooks.example/in", ["10.0.0.1"]),
        ("https://127.0.0.1/", ["93.184.215.14"]),
        ("https://hooks.example/in", []),
        ("", ["93.184.215.14"]),
    ],
)
def test_an_internal_or_unresolvable_address_is_refused(
    service: Service, url: str, found: list[str]
) -> None:
    client = safe_http.HttpClient(resolver=lambda _host: found)
    with pytest.raises(errors.BadInput) as refused:
        registration.set_webhook("demo", url, Terms(), service.by(), client)
    assert (refused.value.field, registration.every("demo")) == ("url", ())


def test_commands_list_the_classifiers_and_show_a_secret_once(service: Service, run: Run) -> None:
    assert run("classifier", "show", "demo").output == ""
    made = run(
        "classifier", "webhook", "demo", service.receiver.url, "--while-shown", "--then", "show"
    )
    (secret,) = SECRET.findall(made.output)
    shown = run("classifier", "show", "demo").output
    assert shown == (
        f"webhook\t{service.receiver.url}\tasked while a comment is shown, about all comments; "
        "if it cannot be asked, they are shown\n"
    )
    assert SECRET.findall(run("classifier", "webhook", "demo", service.receiver.url).output) == []
    (newer,) = SECRET.findall(run("classifier", "rotate", "demo").output)
    (found,) = registration.every("demo")
    assert registration.secrets_of(found, sample_threads.SETTINGS.secret, now=service.now) == (
        newer,
        secret,
    )
    (newest,) = SECRET.findall(run("classifier", "rotate", "demo", "--leaked").output)
    (found,) = registration.every("demo")
    assert registration.secrets_of(found, sample_threads.SETTINGS.secret, now=service.now) == (
        newest,
    )
    assert (
        "no longer asks the site's own service"
        in run("classifier", "remove", "demo", "webhook").output
    )
    for refused in (
        run("classifier", "remove", "demo", "webhook"),
        run("classifier", "webhook", "demo", "http://inside"),
        run("classifier", "webhook", "nowhere", service.receiver.url),
        run("classifier", "show", "nowhere"),
    ):
        assert (refused.exit_code, refused.output[:7]) == (1, "Error: ")


def test_an_owner_registers_a_classifier_in_the_console_and_sees_its_secret_once(
    service: Service, owner: Desk, site: records.Site
) -> None:
    assert "Disabled." in owner.page("/advisers")
    form = {"act": "set", "name": "webhook", "url": service.receiver.url, "holds": "on"}
    (secret,) = SECRET.findall(owner.settle("/advisers", status=200, **form))
    page = owner.page("/advisers")
    assert service.receiver.url in page
    assert SECRET.findall(page + owner.page("/settings") + owner.page("/log")) == []
    assert service.case(say(site)).rule == "opinion:webhook"
    assert SECRET.findall(owner.settle("/advisers", status=200, **form)) == []
    rotated = owner.settle("/advisers", status=200, act="rotate", name="webhook")
    assert SECRET.findall(rotated) != [secret]
    owner.settle("/advisers", status=200, act="remove", name="webhook")
    assert rulebook.from_store("demo").classifiers == ()
    assert {each.actor.name for each in audit_log.log("demo", subject="adviser:webhook")} == {"Ann"}


def test_commands_enable_akismet_and_never_show_its_key(service: Service, run: Run) -> None:
    said = run("classifier", "akismet", "demo", input="canarykey\n").output
    said += run("classifier", "akismet", "demo", "--everybody", "--while-shown", input="\n").output
    shown = run("classifier", "show", "demo").output
    assert shown.startswith(
        "akismet\thttps://rest.akismet.com/1.1\tasked while a comment is shown, about all"
    )
    assert "canarykey" not in said + shown + stored() + str(audit_log.log("demo"))
    (found,) = registration.every("demo")
    assert registration.secrets_of(found, sample_threads.SETTINGS.secret, now=service.now) == (
        "canarykey",
    )
    run("classifier", "remove", "demo", "akismet")
    refused = run("classifier", "akismet", "demo", input="\n")
    assert (refused.exit_code, "key is required." in refused.output) == (1, True)


def test_an_owner_enables_akismet_in_the_console_and_no_page_shows_the_key(
    service: Service, owner: Desk
) -> None:
    form = {"act": "set", "name": "akismet", "holds": "on"}
    pages = owner.settle("/advisers", status=200, key="canarykey", **form)
    pages += owner.settle("/advisers", status=200, key="", **form, shows="on")
    pages += owner.page("/advisers") + owner.page("/settings") + owner.page("/log")
    assert "canarykey" not in pages + stored()
    (found,) = rulebook.from_store("demo").classifiers
    assert (found.holds, found.shows, found.everybody) == (True, True, False)
    assert registration.secrets_of(found, sample_threads.SETTINGS.secret, now=service.now) == (
        "canarykey",
    )
    owner.settle("/advisers", status=200, act="remove", name="akismet")
    assert rulebook.from_store("demo").classifiers == ()


@pytest.mark.parametrize(
    "form",
    [
        {"act": "set", "name": "akismet"}, {"act": "rotate", "name": "akismet"},
        {"act": "set", "name": "akismet", "key": "two words"},
        {}, {"act": "set"}, {"act": "set", "name": "webhook"}, {"act": "x", "name": "webhook"},
        {"act": "set", "name": "other", "url": "https://hooks.example/"},
        {"act": "set", "name": "webhook", "url": "https://10.0.0.1/"},
        {"act": "set", "name": "webhook", "url": "https://hooks.example/", "holds": "yes"},
    ],
)  # fmt: skip
def test_an_invalid_form_is_refused(owner: Desk, service: Service, form: dict[str, str]) -> None:
    owner.settle("/advisers", status=400, **form)
    assert rulebook.from_store("demo").classifiers == ()


def test_moderators_see_the_verdicts_beside_the_comment(
    service: Service, owner: Desk, site: records.Site
) -> None:
    service.is_asked()
    comment = say(site)
    assert "Waiting for: Custom classifier" in owner.page("/queue")
    service.says("hold", "too <b>loud</b>")
    service.ask()
    for path in ("/queue", f"/comments/{comment.id}"):
        page = owner.page(path)
        assert "Custom classifier: hold (too &lt;b&gt;loud&lt;/b&gt;)" in page
    service.receiver.status = 410
    say(site, "another")
    service.ask()
    assert "Custom classifier could not be reached: answered 410" in owner.page("/queue")
    service.receiver.status = 202
    say(site, "a third")
    service.ask()
    assert "Custom classifier has not answered yet" in owner.page("/queue")


def test_moderators_cannot_change_classifiers(app: flask.Flask, service: Service) -> None:
    account_holders.account("bob", moderator())
    desk = Desk(app, "bob")
    assert desk.client.get(f"{DESK}/advisers").status_code == 403
    desk.settle("/advisers", status=403, act="remove", name="webhook")
