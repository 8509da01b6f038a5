"""Webhook endpoints are registered, get their events, and are paused or disabled after failures."""

from datetime import timedelta

import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.outcomes import End, Outcome
from comments.events import dispatcher, message_queue, safe_http, webhook_endpoints, webhooks
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection, reads
from comments.upkeep import wiring
from datastore_emulator import errors as engine_errors
from datastore_emulator import inprocess, testing
from tests.support import datastores
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

NOW = sample_threads.START
URL = "https://hooks.example/in"
SECRETS = [webhooks.secret(bytes([n]) * 32) for n in range(4)]
CLIENT = safe_http.HttpClient(resolver=lambda _host: ["93.184.215.14"])
ALL = webhooks.PUBLIC_TYPES


def _add(
    name: str = "one", url: str = URL, types: tuple[webhooks.Type, ...] = ALL, site: str = "demo"
) -> None:
    webhook_endpoints.add(
        site, webhook_endpoints.Registered(name, url, (SECRETS[0],), types, NOW), CLIENT
    )


def _note(end: End, reason: str = "answered 500", *, later: timedelta, asked: int = 0) -> None:
    webhook_endpoints.note("demo/one", Outcome(end, reason, asked), now=NOW + later)


def _told() -> list[tuple[str, str]]:
    """Deliver the events; return each stored message as (queue, content)."""
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)
    stored = reads.fetch(reads.Query("Message"))
    return sorted(
        (row.properties["queue"].string_value, row.properties["content"].string_value)
        for row in stored
    )


def test_a_hook_is_registered_listed_and_removed(
    store: connection.Store, site: records.Site
) -> None:
    _add()
    _add("two", f"{URL}2", (webhooks.Type.POSTED,))
    assert [(each.id, each.url, each.off) for each in webhook_endpoints.every("demo")] == [
        ("one", URL, ""),
        ("two", f"{URL}2", ""),
    ]
    webhook_endpoints.remove("demo", "one")
    assert [each.id for each in webhook_endpoints.every("demo")] == ["two"]
    for unknown in (
        lambda: webhook_endpoints.remove("demo", "one"),
        lambda: webhook_endpoints.get("demo", "one"),
    ):
        with pytest.raises(errors.NotFound, match=r"hook-not-found \(value=one\)"):
            unknown()


@pytest.mark.parametrize(
    ("url", "found", "reason"),
    [
        ("http://hooks.example/in", ["93.184.215.14"], "bad-https-port"),
        ("https://hooks.example/in", ["10.0.0.1"], "unsafe-address"),
        ("https://hooks.example/", ["93.184.215.14", "127.0.0.1"], "unsafe-address"),
        ("https://user@hooks.example/", ["93.184.215.14"], "unsafe-url"),
        ("https://localhost/", ["93.184.215.14"], "bad-host"),
        ("https://169.254.169.254/", ["93.184.215.14"], "bad-host"),
        ("https://hooks.example:25/", ["93.184.215.14"], "bad-https-port"),
        ("", ["93.184.215.14"], "bad-https-port"),
    ],
)
def test_a_url_that_resolves_to_an_internal_address_is_refused_at_registration(
    store: connection.Store, site: records.Site, url: str, found: list[str], reason: str
) -> None:
    client = safe_http.HttpClient(resolver=lambda _host: found)
    with pytest.raises(errors.UnsafeAddress) as refused:
        webhook_endpoints.add(
            "demo", webhook_endpoints.Registered("one", url, (SECRETS[0],), ALL, NOW), client
        )
    assert (refused.value.field, refused.value.code) == ("url", reason)
    assert webhook_endpoints.every("demo") == ()


def test_a_name_without_an_address_is_refused(store: connection.Store, site: records.Site) -> None:
    def unknown(_host: str) -> list[str]:
        raise OSError("planned")

    made = webhook_endpoints.Registered("one", URL, (SECRETS[0],), ALL, NOW)
    with pytest.raises(errors.BadInput, match="unreachable-url"):
        webhook_endpoints.add("demo", made, safe_http.HttpClient(resolver=unknown))


def test_a_site_has_a_limited_number_of_hooks_with_distinct_urls(
    store: connection.Store, site: records.Site
) -> None:
    for number in range(webhook_endpoints.MOST):
        _add(f"{number}", f"{URL}{number}")
    with pytest.raises(errors.Conflict, match=r"too-many-hooks \(limit=10\)"):
        _add("more", f"{URL}more")
    webhook_endpoints.remove("demo", "9")
    with pytest.raises(errors.Conflict, match="hook-exists"):
        _add("more", f"{URL}0")
    with pytest.raises(errors.NotFound, match=r"site-not-found \(value=nobody\)"):
        _add(site="nobody")


def test_a_new_secret_signs_beside_the_old_one_unless_that_leaked(
    store: connection.Store, site: records.Site
) -> None:
    _add()
    webhook_endpoints.rotate("demo", "one", SECRETS[1], keeps_old=True)
    assert webhook_endpoints.get("demo", "one").secrets == (SECRETS[1], SECRETS[0])
    webhook_endpoints.rotate("demo", "one", SECRETS[1], keeps_old=True)  # Retry after a lost answer
    assert webhook_endpoints.get("demo", "one").secrets == (SECRETS[1], SECRETS[0])
    webhook_endpoints.rotate("demo", "one", SECRETS[2], keeps_old=True)
    assert webhook_endpoints.get("demo", "one").secrets == (SECRETS[2], SECRETS[1])
    webhook_endpoints.rotate("demo", "one", SECRETS[3], keeps_old=False)
    assert webhook_endpoints.get("demo", "one").secrets == (SECRETS[3],)


def test_a_change_whose_answer_was_lost_is_applied_once(
    datastore: datastores.Datastore, site: records.Site
) -> None:
    def lose(method: str, _: object, proceed: object) -> object:
        answer = proceed()  # type: ignore[operator]
        if method == "Commit" and lost:
            raise lost.pop()
        return answer

    lost: list[Exception] = []
    store = datastore.connect(lose)  # type: ignore[arg-type]
    with store.context():
        for verb in (
            _add,
            lambda: webhook_endpoints.rotate("demo", "one", SECRETS[1], keeps_old=True),
            lambda: webhook_endpoints.remove("demo", "one"),
        ):
            lost.append(_fault())
            verb()
            assert lost == []
        assert webhook_endpoints.every("demo") == ()


def _fault() -> Exception:
    error = engine_errors.DatastoreError("planned")
    error.status = "UNAVAILABLE"
    return error


# --- Failing hooks --------------------


def test_a_failing_hook_is_paused_for_doubling_times_or_its_retry_after(
    store: connection.Store, site: records.Site
) -> None:
    _add()
    for number, seconds in enumerate((10, 20, 40)):
        later = timedelta(minutes=number)
        _note(End.RETRY, later=later)
        assert webhook_endpoints.get("demo", "one").paused_until == NOW + later + timedelta(
            seconds=seconds
        )
    _note(End.RETRY, "answered 503", later=timedelta(minutes=5), asked=3_600)
    found = webhook_endpoints.get("demo", "one")
    assert found.paused_until == NOW + timedelta(minutes=65)
    assert (found.failures, found.failing_since, found.reason) == (4, NOW, "answered 503")
    _note(End.DELIVERED, later=timedelta(minutes=66))
    found = webhook_endpoints.get("demo", "one")
    assert (found.failures, found.failing_since, found.paused_until) == (0, None, None)


def test_a_hook_that_fails_for_long_is_disabled_with_a_reason(
    store: connection.Store, site: records.Site
) -> None:
    _add()
    _note(End.RETRY, later=timedelta())
    _note(End.RETRY, later=webhook_endpoints.FAILING_FOR - timedelta(seconds=1))
    assert not webhook_endpoints.get("demo", "one").off
    _note(End.RETRY, "answered 404", later=webhook_endpoints.FAILING_FOR)
    assert (
        webhook_endpoints.get("demo", "one").off
        == "no successful delivery for 3 days: answered 404"
    )
    _note(End.DELIVERED, later=webhook_endpoints.FAILING_FOR)  # A late attempt succeeds
    assert webhook_endpoints.get("demo", "one").off
    webhook_endpoints.switch_on("demo", "one")
    found = webhook_endpoints.get("demo", "one")
    assert (found.off, found.failures, found.paused_until) == ("", 0, None)


def test_a_hook_that_answers_410_is_disabled_at_once(
    store: connection.Store, site: records.Site
) -> None:
    _add()
    _note(End.GIVE_UP, "answered 410", later=timedelta())
    assert webhook_endpoints.get("demo", "one").off == "answered 410"
    sample_threads.post(site, "text")
    assert _told() == []


def test_a_result_for_a_removed_hook_does_not_recreate_it(
    store: connection.Store, site: records.Site
) -> None:
    _add()
    webhook_endpoints.remove("demo", "one")
    _note(End.RETRY, later=timedelta())
    assert webhook_endpoints.every("demo") == ()


def test_the_last_results_are_kept_and_successes_in_a_row_are_not_all_stored(
    store: connection.Store, site: records.Site
) -> None:
    _add()
    delivered = Outcome(End.DELIVERED, "answered 200")

    def is_noted(later: timedelta, outcome: Outcome = delivered) -> bool:
        hook = webhook_endpoints.get("demo", "one")
        return webhook_endpoints.is_worth_noting(hook, outcome, now=NOW + later)

    assert is_noted(timedelta())
    _note(End.DELIVERED, "answered 200", later=timedelta())
    assert not is_noted(timedelta(seconds=59))
    assert is_noted(timedelta(seconds=59), Outcome(End.RETRY, "answered 500"))
    assert is_noted(webhook_endpoints.QUIET)
    for number in range(1, webhook_endpoints.RECENT + 1):
        _note(End.RETRY, f"answered {500 + number}", later=timedelta(seconds=number))
    assert is_noted(timedelta(seconds=number))  # A success ends the failures.
    recent = webhook_endpoints.get("demo", "one").recent
    assert [each.reason for each in recent] == [f"answered {510 - n}" for n in range(10)]
    assert not any(each.is_delivered for each in recent)


# --- Events --------------------


def test_each_hook_gets_the_events_it_subscribed_to(
    store: connection.Store, site: records.Site
) -> None:
    _add()
    _add("two", f"{URL}2", (webhooks.Type.RETRACTED,))
    row = sample_threads.post(site, "text")
    assert _told() == [("hook/demo/one", '{"type":"comment.posted"}')]
    own_comment.edit(
        row.id,
        author_id=row.author.id,
        body="new",
        revision=None,
        settings=sample_threads.SETTINGS,
        now=NOW,
    )
    own_comment.retract(row.id, author_id=row.author.id, revision=None, now=NOW)
    assert _told() == [
        ("hook/demo/one", '{"type":"comment.edited"}'),
        ("hook/demo/one", '{"type":"comment.posted"}'),
        ("hook/demo/one", '{"type":"comment.retracted"}'),
        ("hook/demo/two", '{"type":"comment.retracted"}'),
    ]
    counter_oracle.assert_all_counted()


def test_comments_of_other_sites_and_imports_are_not_sent(
    store: connection.Store, site: records.Site
) -> None:
    _add()
    other = records.Site("other", (), sorthash.DEFAULT_DIGITS, 2)
    sample_threads.post(other, "text")
    node = records.ImportedComment(
        id="a" * 26,
        reply_to=None,
        author=records.Author("Ann"),
        body="text",
        html="text",
        renderer="",
        status=records.Status.APPROVED,
        created=NOW,
        source="1",
    )
    sample_threads.store_imported(records.ThreadName("demo", "page"), node)
    assert _told() == []


def test_a_site_without_hooks_costs_a_delivery_one_read(
    store: connection.Store, site: records.Site, engine: inprocess.Engine
) -> None:
    costs = []
    site_settings.get("demo")  # A process reads the site's entity once a minute.
    for handlers in (wiring.HANDLERS[:1], wiring.HANDLERS):
        sample_threads.grow(site, sample_threads.TREE)
        with testing.meter(engine) as cost:
            dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=handlers)
        costs.append((cost.reads, cost.writes))
    assert costs[1][1] == costs[0][1]
    assert costs[1][0] <= costs[0][0] + 1


def test_messages_of_a_hook_contain_no_name_and_no_author_id(
    store: connection.Store, site: records.Site
) -> None:
    _add()
    sample_threads.post(site, "text")
    _told()
    for row in reads.fetch(reads.Query("Message")):
        assert "g:text" not in str(row)
        assert "author" not in str(row)
    assert message_queue.queues(10) == ["hook/demo/one"]
