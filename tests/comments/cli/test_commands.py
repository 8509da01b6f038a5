"""Every command refuses wrong arguments in one clear line, with an exit code."""

import pytest

from comments import errors
from comments.domain import records
from comments.sites import site_settings
from tests.comments.cli.conftest import Runner


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stats", "site", "nobody"], "There is no site nobody."),
        (["stats", "days", "demo", "--category", "a//b"], "The name of a category must"),
        (["stats", "days", "demo", "--category", "a", "--all"], "cannot be combined"),
        (["stats", "categories", "demo", "--under", "a/b/c/d"], "must have at most 3 parts"),
        (["stats", "categories", "demo", "--under", "a", "--author", "g:a"], "cannot be combined"),
        (["stats", "commenters", "demo"], "Enter either a thread or --category."),
        (["stats", "commenters", "demo", "page", "--category", "a"], "Enter either a thread or"),
        (
            ["stats", "days", "demo", "--since", "2026-02-01", "--until", "2026-01-01"],
            "since must not be after until.",
        ),
        (["thread", "set", "demo", "page", "--category", "a//b"], "The name of a category must"),
        (["thread", "set", "demo", "page", "--category", "a"], "There is no thread page."),
        (["thread", "set", "nobody", "page", "--category", "a"], "There is no site nobody."),
        (["thread", "set", "demo", "page"], "Nothing to change. Use --title"),
        (
            ["thread", "set", "demo", "page", "--category", "a", "--no-category"],
            "--category and --no-category",
        ),
        (
            ["site", "set", "demo", "--query-key", "a b"],
            '"a b" is not the name of a query parameter.',
        ),
        (
            ["site", "add", "Blog", "--origin", "https://x.example"],
            "site must be 1 to 63 characters long",
        ),
        (["site", "add", "blog", "--origin", "x.example"], '"x.example" is not an origin'),
        (["site", "add", "demo", "--origin", "https://x.example"], "The site demo already exists."),
        (["site", "set", "nobody", "--keep-trailing-slash"], "There is no site nobody."),
        (["site", "set", "demo", "--cdn-seconds", "61"], "cdn_seconds must be between 0 and 60."),
        (["site", "set", "demo", "--cdn-seconds", "-1"], "cdn_seconds must be between 0 and 60."),
        (["site", "set", "demo", "--freshness", "61"], "freshness must be between 0 and 60."),
        (["site", "set", "demo", "--freshness", "-1"], "freshness must be between 0 and 60."),
        (["site", "set", "demo", "--category", "a//b"], "The name of a category must"),
        (["site", "set", "demo"], "Nothing to change for demo."),
        (["repair", "--site", "nobody"], "There is no site nobody."),
        (["stats", "threads", "demo", "\udcff"], "author contains bytes that are not valid UTF-8."),
        (
            ["stats", "audience", "demo", "--every", "thread:\udcff"],
            "audiences.audience.all[0].thread contains characters that are not allowed",
        ),
    ],
)
def test_a_refusal_is_one_clear_line_and_exit_code_1(
    run: Runner, site: records.Site, arguments: list[str], message: str
) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert message in refused.output
    assert refused.output.count("\n") == 1


def test_a_refusal_names_the_option_and_its_range(run: Runner, site: records.Site) -> None:
    for arguments, said in (
        (("site", "set", "demo", "--moderator", "nobody"), "moderators must be one e-mail address"),
        (("budget", "set", "demo", "writes", "9" * 30), "writes must be between 0 and "),
        (
            ("post-limits", "set", "demo", "same_texts", "9" * 30),
            "a whole number of up to 9 digits",
        ),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 1
        assert said in refused.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "disqus", "no-such-file.xml", "--site", "demo"],
        ["import", "livejournal", "x.xml", "--site", "demo"],
        ["import", "disqus"],
        ["site", "add", "blog"],
    ],
)
def test_wrong_usage_is_exit_code_2(run: Runner, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_recount_refuses_unknown_sites_and_threads(run: Runner, site: records.Site) -> None:
    for arguments in (["never"], ["demo", "never"], ["never", "page"]):
        refused = run("recount", *arguments)
        assert refused.exit_code == 1
        assert refused.output.startswith("Error: ")


def test_a_store_that_does_not_answer_is_reported_in_one_line(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> list[records.Site]:
        raise errors.Overloaded("the store did not answer in time")

    monkeypatch.setattr(site_settings, "every", fail)
    refused = run("site", "list")
    assert refused.exit_code == 1
    assert refused.output == (
        "Error: The service is busy. Try again in 2 seconds. "
        "Reason: the store did not answer in time.\n"
    )
