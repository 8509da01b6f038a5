"""The commands of statistics print the numbers that are stored."""

import json

from comments.domain import records
from comments.events import dispatcher
from comments.store import connection
from comments.upkeep import wiring
from tests.comments.cli.conftest import Runner
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads


def test_statistics_are_shown(run: Runner, store: connection.Store, site: records.Site) -> None:
    sample_threads.grow(
        sample_threads.filing(site, "news"), sample_threads.TREE, categories=("news",), title="=1+1"
    )
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    assert run("stats", "categories", "demo", "--format", "csv").output == (
        "category,day,comments,commenters,pending,spam,rejected,retracted\nnews,,8,8,0,0,0,0\n"
    )
    assert run("stats", "site", "demo").output.splitlines()[1].split() == list("8800") + ["0"] * 4
    (day,) = json.loads(run("stats", "days", "demo", "--format", "json").output)
    assert (day["day"], day["comments"], day["commenters"]) == ("2026-01-02", 8, 8)
    options = ["--all", "--since", "2026-01-02", "--until", "2026-01-02"]
    assert run("stats", "days", "demo", *options).output.count("2026-01-02") == 2
    assert run("stats", "days", "demo", "--category", "News").output.count("2026-01-02") == 1
    assert run("stats", "days", "demo", "--since", "2026-01-03").output.count("\n") == 1
    for options in ([], ["--category", "News"], ["--since", "2026-01-02", "--until", "2026-01-02"]):
        votes = "," if "--category" in options else "0,0"
        assert run("stats", "months", "demo", *options, "--format", "csv").output == (
            f"month,comments,pending,spam,rejected,retracted,up,down\n2026-01,8,0,0,0,0,{votes}\n"
        )
    assert run("stats", "commenters", "demo", "page").output.count("g:") == 8
    threads = run("stats", "threads", "demo", "g:2.1", "--format", "csv")
    assert threads.output == "thread,title,comments\npage,'=1+1,1\n"


def test_statistics_of_nested_categories_are_shown(
    run: Runner, store: connection.Store, site: records.Site
) -> None:
    filed = sample_threads.filing(site, "news", "sport/football")
    for number, category in enumerate(["news", "sport/football", "sport/football"]):
        sample_threads.post(
            filed, f"{number}", thread=category[:4], categories=(category,),
            author=sample_threads.author("ann" if number else "bob"),
        )  # fmt: skip
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    under = run("stats", "categories", "demo", "--under", "Sport", "--format", "csv").output
    assert [line.split(",")[:4] for line in under.splitlines()[1:]] == [
        ["sport", "", "2", "1"],
        ["sport/football", "", "2", "1"],
    ]
    assert json.loads(
        run("stats", "categories", "demo", "--author", "g:bob", "--format", "json").output
    ) == [{"category": "news", "comments": 1}]
    assert run("stats", "commenters", "demo", "--category", "sport").output.splitlines()[1:] == [
        "g:ann   2"
    ]
