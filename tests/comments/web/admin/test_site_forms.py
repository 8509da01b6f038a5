"""Test the console's forms for bans, threads, rules and settings."""

import dataclasses
import html
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import flask
import msgspec
import pytest

from comments import errors
from comments.domain import records, site_options
from comments.domain.records import Policy, Status, Verb
from comments.events import audit_log, dead_letters, dispatcher, outbox
from comments.limits import usage
from comments.moderation import decisions
from comments.moderation.policy import policy_changes, rulebook
from comments.sites import site_settings, site_setup
from comments.store import transactions
from comments.transfer.importing import running_import
from comments.transfer.parsing import imported_file
from comments.tree.counters import statistics
from comments.upkeep import service_checks, wiring
from comments.upkeep.backups import nightly_backup
from comments.web.admin import plots
from comments.web.http import context
from comments.web.rendering import labels
from tests.support import stored_state
from tests.support.histories import counter_oracle
from tests.support.html import html_reader, html_validator
from tests.support.people import account_holders
from tests.support.people.console_browser import DESK, OWN, Desk
from tests.support.threads import sample_threads, sample_votes

ADA = records.Actor("cli", "Ada")
EVE = records.Author("Eve", id="g:eve")


def now() -> datetime:
    return datetime.now(UTC)


def test_a_ban_keeps_an_author_out_and_hides_comments_until_it_is_lifted(
    desk: Desk, site: records.Site
) -> None:
    rows = [sample_threads.post(site, f"text {number}", author=EVE) for number in range(3)]
    other = sample_threads.post(site, "another's")
    assert "Ban this author" in desk.page("/author?id=g%3Aeve")
    desk.settle("/bans?id=g%3Aeve", act="ban", days="7", hide="on", reason="rude")
    page = desk.page("/author?id=g%3Aeve")
    assert "Banned until" in page
    assert "g:eve" in desk.page("/authors")
    assert sample_threads.listed(site) == ["another's"]
    with pytest.raises(errors.Forbidden):
        sample_threads.post(site, "again", author=EVE, now=now())
    entry = audit_log.log("demo", subject="author:g:eve")[0]
    assert (entry.verb, entry.actor.name, entry.reason) == ("ban", "Bob", "rude")
    desk.settle("/bans?id=g%3Aeve", act="unban", hide="on")
    assert sorted(sample_threads.listed(site)) == ["another's", "text 0", "text 1", "text 2"]
    sample_threads.post(site, "again", author=EVE, now=now())
    assert decisions.case("demo", other.id).comment == other
    assert {decisions.case("demo", row.id).comment.status for row in rows} == {Status.APPROVED}
    desk.settle("/bans?id=g%3Aeve", act="unban", status=404)


def test_linked_authors_are_one_person_until_they_are_unlinked(
    desk: Desk, site: records.Site
) -> None:
    sample_threads.post(site, "one", author=EVE)
    other = sample_threads.post(site, "two", author=records.Author("Eve 2", id="g:eve2"))
    dispatcher.deliver(counter_oracle.events(), now=now(), handlers=wiring.HANDLERS)
    assert "1 approved" in desk.page("/author?id=g%3Aeve")
    page = desk.settle("/author/links?id=g%3Aeve", act="link", other="nobody", status=400)
    assert re.findall(r"<details open>\s*<summary>(.*)</summary>", page) == ["Link authors"]
    sent = {"form": desk.token, "act": "link", "other": other.id, "reason": "same person"}
    answer = desk.client.post(f"{DESK}/author/links?id=g%3Aeve", data=sent, headers=OWN)
    assert answer.headers["Location"].endswith("#linked")
    page = desk.page("/author?id=g%3Aeve")
    assert "2 approved" in page
    assert [text in page for text in ("Eve 2", "<p>one</p>", "<p>two</p>")] == [True] * 3
    rows = re.findall(r"(\d) approved", desk.page("/queue?status=approved"))
    assert rows == ["2", "2"]  # The record of the person beside each comment
    desk.settle("/bans?id=g%3Aeve2", act="ban", hide="on")
    assert sample_threads.listed(site) == []
    assert {ban.author for ban in rulebook.from_store("demo").bans} == {"g:eve", "g:eve2"}
    desk.settle("/author/links?id=g%3Aeve", act="unlink", other="g:eve2")
    assert "Eve 2" not in desk.page("/author?id=g%3Aeve")
    desk.settle("/author/links?id=g%3Aeve", act="unlink", other="g:eve2", status=404)
    desk.settle("/author/links?id=g%3Aeve", act="allow", status=404)
    verbs = [entry.verb for entry in audit_log.log("demo", subject="author:g:eve")]
    assert verbs == ["unlink-authors", "link-authors"]
    desk.settle("/author/links?id=g%3Aeve2", act="link", other="g:eve")
    assert audit_log.log("demo", subject="author:g:eve2")[0].verb == "link-authors"


@pytest.mark.parametrize("days", ["0", "x", "-1", "1000000000", "1.5"])
def test_an_invalid_ban_length_bans_nobody(desk: Desk, site: records.Site, days: str) -> None:
    desk.settle("/bans?id=g%3Aeve", act="ban", days=days, status=400)
    desk.settle("/bans", act="ban", status=400)
    assert rulebook.from_store("demo").bans == ()


def test_a_thread_is_locked_opened_and_given_a_policy(desk: Desk, site: records.Site) -> None:
    sample_threads.post(site, "first", thread="a page?x=1")
    desk.settle("/thread/state?thread=a+page%3Fx%3D1", state="closed")
    with pytest.raises(errors.Conflict):
        sample_threads.post(site, "second", thread="a page?x=1")
    assert "Locked: nobody can comment</option>" in desk.page("/thread?thread=a+page%3Fx%3D1")
    assert 'value="closed" selected' in desk.page("/thread?thread=a+page%3Fx%3D1")
    desk.settle("/thread/state?thread=a+page%3Fx%3D1", state="open", policy="all")
    assert sample_threads.post(site, "second", thread="a page?x=1").status is Status.PENDING
    desk.settle("/thread/state?thread=a+page%3Fx%3D1", state="open", policy="")
    assert sample_threads.post(site, "third", thread="a page?x=1").status is Status.APPROVED
    for form in ({"state": "x"}, {"state": "open", "policy": "x"}, {}):
        desk.settle("/thread/state?thread=a+page%3Fx%3D1", status=400, **form)
    desk.settle("/thread/state?thread=nowhere", state="closed", status=404)
    assert [each.actor.name for each in audit_log.log("demo")] == ["Bob"] * 3


def test_a_rule_is_tried_without_effect_then_saved_changed_and_removed(
    desk: Desk, site: records.Site
) -> None:
    sample_threads.post(site, "buy at the casino now")
    sample_threads.post(site, "nothing of it")
    form = {"id": "bets", "action": "hold", "words": "casino*, big win", "is_on": "on"}
    before = {kind: list(map(str, stored_state.rows(kind))) for kind in ("Comment", "AuditEntry")}
    tried = desk.settle("/rules", act="try", status=200, **form)
    assert "matched 1 of the last 2 comments" in tried
    assert "the text contains &#34;casino*&#34;" in tried
    assert 'value="casino*, big win"' in tried
    after = {kind: list(map(str, stored_state.rows(kind))) for kind in ("Comment", "AuditEntry")}
    assert after == before
    assert rulebook.from_store("demo").rules == ()

    desk.settle("/rules", act="put", **form)  # type: ignore[arg-type]
    (rule,) = rulebook.from_store("demo").rules
    assert (rule.id, rule.words) == ("bets", ("casino*", "big win"))
    row = sample_threads.post(site, "a Big Win")
    assert row.status is Status.PENDING
    assert "Rule “bets”: the text contains" in desk.page("/queue")
    assert 'value="casino*, big win"' in desk.page("/rules?rule=bets")
    fields = ("names", "websites", "hosts", "scripts", "networks", "repeated", "younger_than")
    form = dict.fromkeys(("words", *fields), "")
    form |= {"action": "spam", "links": "2", "approved_under": "3"}
    desk.settle("/rules", act="put", id="bets", **form)  # type: ignore[arg-type]
    (rule,) = rulebook.from_store("demo").rules
    assert (rule.action, rule.words, rule.links, rule.is_on) == ("spam", (), 2, False)
    assert "more than 2 links; fewer than 3 approved comments" in desk.page("/rules")
    desk.settle("/rules/remove", id="bets")
    assert rulebook.from_store("demo").rules == ()
    assert [each.verb for each in audit_log.log("demo")] == ["remove-rule", "put-rule", "put-rule"]
    assert desk.client.get(f"{DESK}/rules?rule=bets").status_code == 404


@pytest.mark.parametrize(
    "form",
    [
        {"act": "put", "action": "hold"}, {"act": "try", "action": "hold"},
        {"act": "put", "action": "delete", "words": "x"},
        {"act": "put", "action": "hold", "words": "a*b"},
        {"act": "put", "action": "hold", "networks": "nowhere"},
        {"act": "put", "action": "hold", "links": "many"},
        {"act": "put", "action": "hold", "words": "x", "id": "Ä"},
        {"act": "try", "action": "hold", "words": "x", "last": "1001"},
        {"act": "try", "action": "hold", "words": "x", "last": "0"},
        {"act": "put", "action": "hold", "words": "x", "author": "g:eve"},
    ],
)  # fmt: skip
def test_an_invalid_rule_is_refused(desk: Desk, form: dict[str, str]) -> None:
    desk.settle("/rules", status=400, **form)
    assert rulebook.from_store("demo").rules == ()


def test_fields_for_several_values_say_how_to_separate_them(owner: Desk) -> None:
    page = owner.page("/settings")
    described = {
        values["id"]: values["aria-describedby"]
        for tag, values in html_reader.Elements(page).elements
        if tag == "input" and "aria-describedby" in values and values["id"] != "short_name"
    }
    for name in ("origins", "query_keys", "moderators", "images"):
        note = re.escape(described[name] or "")
        assert re.search(
            rf'<p id="{note}" class="ft-note">[^<]*Separate several values with spaces\.</p>', page
        )
    assert "Websites whose pages may post comments, such as" in page


def test_an_owner_changes_the_sites_settings_and_the_log_names_it(owner: Desk) -> None:
    form = {
        "origins": "https://demo.example https://www.demo.example:8443", "query_keys": "id,page",
        "keep_trailing_slash": "on", "ignore_amp": "on", "cdn_seconds": "30",
        "categories": "cats, small dogs", "moderators": "ann@example.org", "freshness": "9",
    }  # fmt: skip
    owner.settle("/settings", **form)  # type: ignore[arg-type]
    site = site_settings.get("demo")
    assert site.origins == ("https://demo.example", "https://www.demo.example:8443")
    assert (site.query_keys, site.cdn_seconds, site.freshness) == (("id", "page"), 30, 9)
    assert (site.keep_trailing_slash, site.ignore_www, site.ignore_amp) == (True, False, True)
    assert site.categories == ("cats", "small dogs")
    page = owner.page("/settings")
    assert 'value="https://demo.example https://www.demo.example:8443"' in page
    assert 'value="ann@example.org"' in page
    entry = audit_log.log("demo")[0]
    assert (entry.verb, entry.actor.name) == ("set-site", "Ann")
    assert entry.after == (
        "origins, query_keys, keep_trailing_slash, ignore_amp, cdn_seconds, categories, "
        "moderators, freshness"
    )
    owner.settle("/settings", **form)  # type: ignore[arg-type]  # nothing is changed, and nothing noted
    assert len(audit_log.log("demo")) == 1
    for name, value in (
        ("origins", "demo.example"), ("origins", "javascript:alert(1)"), ("cdn_seconds", "61"),
        ("cdn_seconds", ""), ("moderators", "nobody"), ("query_keys", "p=7"),
        ("role", "owner"), ("digits", "01"),
        ("freshness", "61"), ("freshness", ""),
    ):  # fmt: skip
        owner.settle("/settings", status=400, **{**form, name: value})
    assert site_settings.get("demo") == site


def test_an_owner_changes_the_options_for_readers_and_the_log_names_them(
    owner: Desk, desk: Desk
) -> None:
    form = {
        "votes": "on", "website": "", "guests": "on", "moderation": "on", "forms": "on",
        "order": "best", "theme": "dark", "language": "en", "live": "", "images": "https://img.example",
    }  # fmt: skip
    owner.settle("/settings/options", **form)  # type: ignore[arg-type]
    options = site_settings.get("demo").options
    assert options == site_options.SiteOptions(
        website=False, order="best", theme="dark", language="en", live=0, forms=True,
        images=("https://img.example",),
    )  # fmt: skip
    page = owner.page("/settings")
    assert 'value="https://img.example"' in page
    assert '<option value="best" selected>Best discussions first</option>' in page
    assert 'name="votes" value="on" checked' in page
    assert 'name="website" value="on">' in page
    entry = audit_log.log("demo")[0]
    assert entry.after == "website, order, images, live, theme, language, forms"
    assert "websites of authors, order of comments, image origins, live updates" in owner.page(
        "/log"
    )
    for name, value in (
        ("live", "9"), ("live", "x"), ("images", "http://img.example"), ("order", "random"),
        ("language", "tlh"), ("votes", "yes"), ("width", "3"),
    ):  # fmt: skip
        owner.settle("/settings/options", status=400, **{**form, name: value})
    assert site_settings.get("demo").options == options
    desk.settle("/settings/options", status=403, **form)


def test_an_owner_sets_the_policy_and_a_moderator_cannot(owner: Desk, desk: Desk) -> None:
    owner.settle("/settings/policy", policy="first", close_after="90", reports="5")
    book = rulebook.from_store("demo")
    assert (book.policy, book.close_after, book.reports) == (Policy.FIRST, 90, 5)
    for form in (
        {"policy": "none", "close_after": "0", "reports": "0"},
        {"policy": "off", "close_after": "-1", "reports": "0"},
        {"policy": "off", "close_after": "99999", "reports": "0"},
    ):
        owner.settle("/settings/policy", status=400, **form)
    desk.settle("/settings/policy", policy="off", close_after="0", reports="0", status=403)
    desk.settle("/settings", origins="https://evil.example", status=403)
    assert desk.client.get(f"{DESK}/settings").status_code == 403
    assert "Settings" not in desk.page("/queue")
    assert rulebook.from_store("demo") == book


def test_a_log_entry_is_undone_once_and_only_on_its_own_site(
    desk: Desk, site: records.Site
) -> None:
    row = sample_threads.post(site, "text")
    decisions.decide("demo", row.id, Verb.SPAM, ADA, now=sample_threads.START)
    blog = site_settings.add(
        "blog", [], scheme=sample_threads.SETTINGS.scheme, now=sample_threads.START
    )
    foreign = sample_threads.post(blog, "text")
    decisions.decide("blog", foreign.id, Verb.SPAM, ADA, now=sample_threads.START)
    desk.settle("/log", entry=audit_log.log("blog")[0].id, status=404)
    desk.settle("/log", entry="x", status=404)
    entry = audit_log.log("demo")[0].id
    assert f'value="{entry}"' in desk.page("/log")
    desk.settle("/log", entry=entry)
    assert decisions.case("demo", row.id).comment.status is Status.APPROVED
    desk.settle("/log", entry=entry, status=409)
    assert decisions.case("blog", foreign.id).comment.status is Status.SPAM


def _statistics(desk: Desk, query: str = "") -> str:
    """Return the page with its cells as plain `<td>`, without the labels for phones."""
    return re.sub("<td [^>]*>", "<td>", desk.page(f"/statistics{query}"))


@pytest.mark.usefixtures("one_day")
def test_a_sites_numbers_are_a_table_and_a_plot_of_the_same_numbers(
    desk: Desk, site: records.Site
) -> None:
    filing = sample_threads.filing(site, "cats", "dogs")
    site_settings.change("demo", filed=["cats", "dogs"])
    for number in range(6):
        sample_threads.post(
            filing, f"text {number}", now=now() - timedelta(days=number // 2),
            thread=f"t{number % 2}", categories=("cats",) if number % 2 else ("dogs",),
            author=EVE if number == 1 else sample_threads.author(f"author {number // 2}"),
        )  # fmt: skip
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=now(), handlers=wiring.HANDLERS)
    longer = f"?since={now().date() - timedelta(days=89)}"
    for query, per_day in (("", 2), (longer, 2), ("?category=cats", 1)):
        page = _statistics(desk, f"{query}")
        assert "6 approved comments by 4 commenters" in page
        _, comments, people, _, _, there = page.split('<svg class="ft-plot"')
        assert comments.count(f": {per_day}</title>") == 3
        # On one day, Eve and a second author posted; on each other day, one author wrote both
        # comments.
        assert people.count(": 1</title>") == (3 if query == "?category=cats" else 2)
        assert "dogs: 3</title>" in there
        assert "cats: 3</title>" in there
        for line in statistics.by_day("demo").lines:
            day = labels.day(line.day)  # type: ignore[arg-type]
            assert re.search(rf'"row" class="ft-day">{day}</th><td>{per_day}</td>', page)
    assert re.search(r'"row">dogs</th><td>3</td><td>3</td>', page)
    assert re.search(r'"row">cats</th><td>3</td><td>3</td>', page)
    assert "include its subcategories" not in _statistics(desk)
    for backward in ("since=2026-02-01&until=2026-01-31", "since=2026-03-01&until=2026-01-31"):
        response = desk.client.get(f"{DESK}/statistics?{backward}")
        assert response.status_code == 400
        assert '<a href="?">' in response.text  # back to the page
    assert desk.client.get(f"{DESK}/statistics?category=%00").status_code == 400
    assert desk.client.get(f"{DESK}/statistics?until=").status_code == 400
    assert desk.client.get(f"{DESK}/statistics?until=2026-02-30").status_code == 400


def test_the_busiest_page_of_an_old_year_is_listed_and_downloaded(
    desk: Desk, site: records.Site
) -> None:
    for number, (year, thread) in enumerate(
        [(2012, "old"), (2012, "old"), (2012, "old"), (2013, "=1+1"), (2013, "=1+1"), (2013, "old")]
    ):
        made = sample_threads.post(
            site, f"text {number}", thread=thread, title=f"=Title of {thread}",
            now=datetime(year, 5, 3, number, tzinfo=UTC), author=EVE,
        )  # fmt: skip
    for voter, value in (("ann", 1), ("bob", 1), ("cid", -1)):
        sample_votes.vote(made, voter, value)
    sample_votes.count_waiting()
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=now(), handlers=wiring.HANDLERS)
    asked = "since=2013-01-01&until=2013-12-31"
    page = _statistics(desk, f"?{asked}")
    lines = re.findall(r"<bdi>([^<]*)</bdi></a></th><td>(\d)</td>", page)
    assert lines == [("=Title of =1+1", "2"), ("=Title of old", "1"), (EVE.name, "3")]
    assert re.findall(r"<title>(0[345]:00: \d)</title>", page) == [
        "03:00: 1", "04:00: 1", "05:00: 1"
    ]  # fmt: skip

    def table(name: str) -> list[str]:
        response = desk.client.get(f"{DESK}/statistics/{name}.csv?{asked}")
        assert response.headers["Content-Disposition"] == f"attachment; filename=demo-{name}.csv"
        return response.text.splitlines()

    assert table("pages") == [
        "thread,title,url,comments", "'=1+1,'=Title of =1+1,,2", "old,'=Title of old,,1"
    ]  # fmt: skip
    assert table("people") == ["author,name,comments", f"{EVE.id},{EVE.name},3"]
    assert len(table("hours")) == 25
    assert table("hours")[4] == "3,1,0,0,0,0,1,0,0"
    assert table("days")[1:] == [",2013-05-03,3,1,0,0,0,0,2,1"]
    assert table("months") == [
        "month,comments,pending,spam,rejected,retracted,up,down", "2013-05,3,0,0,0,0,2,1"
    ]  # fmt: skip
    assert "Votes on the approved comments of each day" in page
    assert "Upvotes" in page
    assert "Upvotes" not in desk.page(f"/statistics?{asked}&category=news")
    assert table("categories") == [
        "category,day,comments,commenters,pending,spam,rejected,retracted"
    ]
    assert desk.client.get(f"{DESK}/statistics/nothing.csv").status_code == 404
    assert desk.client.get(f"{DESK}/statistics/hours.csv?since=2999-01-01").status_code == 400


@pytest.mark.parametrize("category", ["", "news"])
def test_statistics_without_recent_comments_lead_to_the_days_with_comments(
    desk: Desk, site: records.Site, category: str
) -> None:
    """As after an import of an old site; a chosen period stays, with a link."""
    filing = sample_threads.filing(site, "news")
    for year in (2016, 2018):
        day = datetime(year, 5, 3, tzinfo=UTC)
        sample_threads.post(filing, f"of {year}", now=day, categories=("news",))
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=now(), handlers=wiring.HANDLERS)
    opened = _statistics(desk, f"?{urlencode({'category': category})}")
    assert "no comments in the last 30 days" in opened
    asked = urlencode({"category": category, "until": "2016-01-31"})
    page = _statistics(desk, f"?{asked}")
    assert "No comments on these days." in page
    link = re.search(
        rf'href="[^"]*(/statistics\?[^"]*)">Show the days until {labels.day(day)}', page
    )
    assert link
    linked = _statistics(desk, html.unescape(link[1]).removeprefix("/statistics"))
    for shown in (opened, linked):
        assert "No comments on these days." not in shown
        assert f'<th scope="row" class="ft-day">{labels.day(day)}</th><td>1</td>' in shown
    assert desk.page("/statistics?until=0001-01-01")


def test_a_period_of_years_is_shown_by_month_and_compared_with_the_years_before(
    desk: Desk, site: records.Site
) -> None:
    for at in ("2012-12-31", "2013-02-01", "2013-02-28", "2013-04-01", "2015-01-01"):
        sample_threads.post(site, f"of {at}", now=datetime.fromisoformat(f"{at}T12:00+00:00"))
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=now(), handlers=wiring.HANDLERS)
    page = _statistics(desk, "?since=2013-01-01&until=2014-12-31")
    assert "<h2>By month (UTC)</h2>" in page
    months = re.findall(r'class="ft-day">(\w+ \d+)</th><td>(\d+)</td>', page)
    assert months == [("Apr 2013", "1"), ("Feb 2013", "2")]
    plotted = re.findall(r"<title>(\w+ \d+: \d+)</title>", page)
    assert plotted == ["Feb 2013: 2", "Apr 2013: 1"]
    compared = [re.findall(r"<td>(.*?)</td>", row)[0] for row in page.split("<tr>")[2:5]]
    assert compared == ["3", "1", "+2"]
    everything = re.search(r'href="[^"]*(/statistics\?[^"]*)">All time', page)
    assert everything
    page = _statistics(desk, html.unescape(everything[1]).removeprefix("/statistics"))
    assert [re.findall(r"<td>(.*?)</td>", row)[0] for row in page.split("<tr>")[2:5]] == [
        "5", "0", "+5",
    ]  # fmt: skip
    assert _statistics(desk, "?since=0001-01-01&until=9999-12-31").count("<h2>") > 3


def test_the_numbers_of_nested_categories_are_shown_with_their_whole_names(
    desk: Desk, site: records.Site
) -> None:
    names = ("pets/cats", "pets/dogs")
    for name in names:
        sample_threads.post(
            sample_threads.filing(site, *names), "text", thread=name[5:], categories=(name,),
            author=EVE, now=now(),
        )  # fmt: skip
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=now(), handlers=wiring.HANDLERS)
    page = _statistics(desk, "?category=pets")
    assert re.search(r'"row">pets</th><td>2</td><td>1</td>', page)
    assert re.search(r'"row">pets/cats</th><td>1</td><td>1</td>', page)
    assert "include its subcategories" in page
    assert "<option selected>pets</option>" in page


def test_todays_usage_is_shown_beside_the_budget(desk: Desk, site: records.Site) -> None:
    assert re.search(
        r'"row">New comments</th><td>0</td><td>Unlimited</td><td></td>', _statistics(desk)
    )
    site_settings.change("demo", budget={"posts": 5})
    for used, left in ((3, "Enough"), (1, "Less than 20%"), (1, "<strong>Nothing</strong>")):
        usage.note("demo", usage.UsageAmounts(posts=used), now=now())
        page = _statistics(desk)
        assert re.search(rf'"row">New comments</th><td>\d</td><td>5</td><td>{left}</td>', page)


def test_bars_are_side_by_side_and_as_high_as_their_numbers() -> None:
    plot = plots.bars([("a", 4), ("b", 0), ("c", 2)])
    first, second, third = plot.bars
    assert plot.most == 4
    assert (first.y, first.height) == (0, plots.HEIGHT)
    assert second.height == 0
    assert third.height == plots.HEIGHT / 2 == third.y
    assert first.x + first.width < second.x < third.x
    assert third.x + third.width <= plots.WIDTH
    assert plots.bars([]).bars == ()
    assert {bar.height for bar in plots.bars([("a", 0)]).bars} == {0}


def test_dead_letters_are_shown_to_owners_of_the_service_and_resolved(
    app: flask.Flask, owner: Desk, desk: Desk, site: records.Site
) -> None:
    rows = [sample_threads.post(site, f"text {number}") for number in range(3)]
    events = [outbox.event_id(row.id, row.revision) for row in rows]
    assert "3 comment events" in owner.client.get("/admin/health").text
    for event in events[:2]:
        for _ in range(100):
            if dead_letters.show(event).is_dead:
                break
            _fail(event)
    page = owner.client.get("/admin/health").text
    assert "1 comment event" in page
    for event in events[:2]:
        assert f'value="{event}"' in page
    owner.settle("/letters", desk="/admin/health", act="revive", id=events[0])
    owner.settle("/letters", desk="/admin/health", act="drop", id=events[1])
    assert dead_letters.count_waiting(now()).dead == 0
    assert not dead_letters.show(events[0]).is_dead
    owner.settle("/letters", desk="/admin/health", act="drop", id=events[1], status=404)
    owner.settle("/letters", desk="/admin/health", act="drop", id=events[0], status=409)
    owner.settle("/letters", desk="/admin/health", act="drop", status=400)
    account_holders.account(
        "cat", account_holders.roles.Grant(account_holders.roles.Role.OWNER, "demo")
    )
    for other in (desk, Desk(app, "cat")):
        assert other.client.get("/admin/health").status_code == 403
        other.settle("/letters", desk="/admin/health", act="drop", id=events[0], status=403)


def test_owners_of_the_service_retry_or_discard_all_dead_letters(
    owner: Desk, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [sample_threads.post(site, f"text {number}") for number in range(3)]
    events = [outbox.event_id(row.id, row.revision) for row in rows]

    def fail_all() -> None:
        for event in events:
            while not dead_letters.show(event).is_dead:
                _fail(event)

    fail_all()
    assert "Try all again" in owner.client.get("/admin/health").text
    owner.settle("/letters", desk="/admin/health", act="revive-all")
    assert dead_letters.dead().letters == ()
    fail_all()
    monkeypatch.setattr(dead_letters, "MOST_SETTLED", 2)
    owner.settle("/letters", desk="/admin/health", act="drop-all")
    assert len(dead_letters.dead().letters) == 1
    owner.settle("/letters", desk="/admin/health", act="drop-all")
    assert dead_letters.dead().letters == ()
    assert "Try all again" not in owner.client.get("/admin/health").text


def test_the_status_page_shows_the_findings_of_doctor(
    app: flask.Flask, owner: Desk, tmp_path: Path
) -> None:
    kept = context.of(app)
    folder = str(tmp_path / "backups")
    settings = dataclasses.replace(kept.settings, data_dir=tmp_path, backup_dir=Path(folder))
    context.keep(app, context.Context(settings, kept.store))
    page = owner.client.get("/admin/health").text
    assert "The last nightly backup is overdue." in page
    assert "PUBLIC_URL" not in page  # Nothing outside this machine is asked
    record = nightly_backup.Record(folder, now(), now(), "The folder <b> does not exist.")
    (tmp_path / "backup.json").write_bytes(msgspec.json.encode(record))
    page = owner.client.get("/admin/health").text
    assert "An attempt failed: The folder &lt;b&gt; does not exist." in page
    with app.app_context():
        findings = [
            *service_checks.machine_findings(settings),
            *service_checks.store_findings(settings, now()),
        ]
    page = html.unescape(owner.settle("/check", desk="/admin/health", status=200))
    for finding in findings:
        assert finding.text.partition(" UTC")[0][:-5] in page


def _fail(event: str) -> None:
    """Make a delivery of an event fail long after the event was written."""

    def body() -> None:
        (row,) = outbox.read([event])
        later = now() + timedelta(days=30)
        transactions.apply(outbox.postpone_writes(row, "nobody is there", now=later))

    transactions.transaction(body)


def test_these_pages_are_valid_html_too(owner: Desk, site: records.Site) -> None:
    row = sample_threads.post(site, "text casino", author=EVE, now=now())
    sample_threads.post(site, "more", author=EVE, now=now())
    policy_changes.ban("demo", "g:eve", ADA, now=now(), is_shadow=True)
    file = imported_file.ImportedFile("disqus", "export.xml", "digest", 9)
    running_import.RunningImport("demo", file, now(), now).begin()
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    documents = [owner.client.get("/admin/health").text]
    dispatcher.deliver(events, now=now(), handlers=wiring.HANDLERS)
    documents += [
        owner.settle("/rules", act="try", action="hold", words="casino", status=200),
        *map(owner.page, ("/rules", "/settings", "/limits", "/imports", "/statistics", "/authors",
                          "/log", "/reported", "/author?id=g%3Aeve", "/thread?thread=page",
                          f"/comments/{row.id}")),
    ]  # fmt: skip
    for document in documents:
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|<img", document)
        names = {name for _, values in html_reader.Elements(document).elements for name in values}
        assert not [name for name in names if name == "style" or name.startswith("on")]
    assert html_validator.complaints(documents) == [[]] * len(documents)


def test_an_owner_allows_an_origin_that_asked_for_the_comments(
    owner: Desk, site: records.Site
) -> None:
    for origin in ("https://elsewhere.example", site_setup.NO_ORIGIN):
        site_setup.note(site, origin, now=datetime.now(UTC))
    page = owner.page("/settings")
    assert 'aria-label="Allow https://elsewhere.example"' in page
    assert 'aria-label="Allow null"' not in page
    assert html_validator.complaints([page]) == [[]]
    owner.settle("/settings/origin", origin="https://elsewhere.example")
    assert "https://elsewhere.example" in site_settings.get("demo").origins
    assert "Allow https" not in owner.page("/settings")


def test_the_name_of_a_site_is_shown_in_the_console(owner: Desk, site: records.Site) -> None:
    owner.settle("/settings", title="Rock & Roll")
    assert site_settings.get("demo").name == "Rock & Roll"
    page = owner.page("/settings")
    assert "Rock &amp; Roll" in page
    assert ">Rock &amp; Roll</a>" in owner.client.get("/admin").text
    assert html_validator.complaints([page]) == [[]]
    owner.settle("/settings", title="x" * 61, status=400)
