"""The dry run proposes mappings as options; added to the command, they are not proposed again."""

import shlex
from pathlib import Path

import click.testing
import flask
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.checking import import_report
from comments.transfer.proposals import mapping_proposals
from comments.transfer.proposals.imported_pages import Proposal
from tests.support import optional_tools
from tests.support.threads.sample_exports import (
    NOW,
    SCHEME,
    SITE,
    THREAD,
    plan_of,
    post,
    rows,
    saved,
)


def threads(*links: str) -> list[str]:
    """Return an export of pages with one comment each."""
    lines = []
    for number, link in enumerate(links, start=1):
        escaped = link.replace("&", "&amp;")
        lines.append(f'<thread dsq:id="{number}"><link>{escaped}</link></thread>\n')
        lines.append(post(str(number), minute=number, thread=str(number)))
    return lines


def proposals(path: Path, site: records.Site) -> list[Proposal]:
    with plan_of(path, site=site) as plan:
        return mapping_proposals.propose(plan.threads, site, plan.report.empty_pages)


def run(app: flask.Flask, file: Path, *options: str) -> click.testing.Result:
    return app.test_cli_runner().invoke(args=["import", str(file), "--site", "garden", *options])


def test_a_dry_run_proposes_options_that_merge_the_pages(
    app: flask.Flask, garden: records.Site, tmp_path: Path
) -> None:
    path = saved(
        tmp_path / "export.xml",
        *threads(
            "http://garden.example/roses/",
            "https://www.garden.example/roses",
            "http://localhost:4000/roses/index.html",
            "http://webcache.googleusercontent.com/search?q=cache:garden.example/roses",
            "//tulips/",
        ),
        '<thread dsq:id="9"><link>http://garden.example/roses/index.html</link></thread>\n',
    )
    shown = run(app, path, "--dry-run")
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    start = lines.index("Proposed mappings. Check them, and add the right ones to the command:")
    assert lines[start + 1 :] == [
        "  --map localhost:4000=garden.example",
        "      localhost:4000 (1 page, 1 comment): 1 of 1 path also on garden.example",
        "  --map www.garden.example=garden.example",
        "      www.garden.example (1 page, 1 comment): differs from garden.example only by www.",
        "  --map localhost:4000/roses/index.html=garden.example/roses",
        "      the same page as garden.example/roses: the index file of a folder",
        "  --map garden.example//tulips=garden.example/tulips",
        "      the same page as garden.example/tulips: a double slash",
        "No mapping is proposed for:",
        (
            "  webcache.googleusercontent.com (1 page, 1 comment): copies of pages by a search "
            "engine, translator or archive"
        ),
        (
            "Comments on hosts that are not the site's are imported, but no page shows them. To "
            "move them to a page, add a mapping of your own, such as "
            "--map old.example/a=blog.example/b"
        ),
        "Dry run: nothing was stored.",
    ]
    assert rows() == []
    options = shlex.split(" ".join(line for line in lines if line.startswith("  --map ")))
    again = run(app, path, *options, "--dry-run")
    assert "Proposed mappings" not in again.output
    assert "Added 5 comments in 3 threads" in run(app, path, *options).output
    assert [row.thread for row in rows()] == [
        *["garden.example/roses"] * 3,
        "garden.example/tulips",
        "webcache.googleusercontent.com/search",
    ]


def test_pages_with_the_same_comments_are_reported_and_merged(tmp_path: Path) -> None:
    links = [f"https://garden.example/{page}" for page in ("roses", "blog/roses.html", "tulips")]
    posts = [
        post(
            f"{thread}{n}", f"{thread}{n - 1}" if n else None, n + 1, message=f"{n}", thread=thread
        )
        for thread, size in (("1", 3), ("2", 2))
        for n in range(size)
    ]
    posts.append(post("30", message="0", minute=9, thread="3"))
    found = [
        THREAD.replace("https://garden.example/roses", link).replace('id="1"', f'id="{n}"')
        for n, link in enumerate(links, start=1)
    ]
    path = saved(tmp_path / "export.xml", *found, *posts)
    with plan_of(path) as plan:
        said = f"{import_report.TWICE}: 2, lines 8, 9"
        assert said in list(plan.report.lines())
    (proposal,) = proposals(path, SITE)
    assert proposal.mapping == "garden.example/blog/roses.html=garden.example/roses"
    assert proposal.reason == (
        "garden.example/blog/roses.html: 2 comments, 2 of them also on garden.example/roses"
    )
    with plan_of(path, mapping=[proposal.mapping]) as plan:
        assert {each.name.id: len(each.nodes) for each in plan.threads} == {
            "garden.example/roses": 3,
            "garden.example/tulips": 1,
        }


def test_pages_that_differ_in_an_ignored_query_are_explained(tmp_path: Path) -> None:
    links = ["https://garden.example/?p=1", "https://garden.example/?p=2&utm_source=x"]
    path = saved(tmp_path / "export.xml", *threads(*links))
    (found,) = proposals(path, SITE)
    assert found.mapping == ""
    assert found.reason == (
        "garden.example/: its pages differ in their queries (p=1, p=2) and become one thread. If "
        "they are different pages, run `site set garden --query-key p` before the import"
    )
    assert proposals(path, msgspec.structs.replace(SITE, query_keys=("p",))) == []
    (kept,) = proposals(path, msgspec.structs.replace(SITE, query_keys=("id",)))
    assert "--query-key id --query-key p`" in kept.reason
    tracked = saved(tmp_path / "2.xml", *threads(links[0], links[0] + "&utm_source=x"))
    assert proposals(tracked, SITE) == []


def test_an_option_is_quoted_for_the_shell_and_long_lists_are_cut(tmp_path: Path) -> None:
    site = msgspec.structs.replace(SITE, query_keys=("ref", "id"))
    links = [f"https://garden.example/{n:02}?ref=x&id=1" for n in range(22)]
    found = proposals(saved(tmp_path / "export.xml", *threads(*links)), site)
    lines = list(mapping_proposals.lines(found))
    assert lines[1] == "  --map 'garden.example/00?id=1&ref=x=garden.example/00?id=1'"
    assert lines[-1] == "  and 2 more. Add these first, then run it again"
    assert len(lines) == 42


def test_a_proposal_contains_no_escape_sequences_from_the_file(tmp_path: Path) -> None:
    links = [f"https://garden.example/?%1b{n}=1&\u202e=2" for n in range(2)]
    links += [f"https://old.example/\u202e{n}" for n in range(2)]
    links += [f"https://garden.example/a?x{n}=\u202e" for n in range(2)]
    found = proposals(saved(tmp_path / "export.xml", *threads(*links)), SITE)
    assert len(found) == 2
    assert all(line.isprintable() for line in mapping_proposals.lines(found))


def test_a_thread_that_is_named_by_an_id_has_no_proposal(tmp_path: Path) -> None:
    thread = '<thread dsq:id="1"><id>old.example/a</id><link>none</link></thread>\n'
    assert proposals(saved(tmp_path / "export.xml", thread, post("1")), SITE) == []


HOSTS = ["garden.example", "www.garden.example", "localhost:4000", "old.example", "web.archive.org"]
PATHS = ["/", "//a", "/a", "/a/", "/a/index.html", "/b?ref=x", "/b?id=1", "/blog/a", "/blog/b"]
# Addresses that contain what a mapping is made of, or cannot be decoded.
PATHS += ["/a=b", "/a=b/index.html", "//a=b.c", "/b?id=c.d&ref=x", "/b?id=/c", "/b?id=http://c.d"]
PATHS += ["/caf%E9/index.html", "//100%", "//index.html", "/%0A//"]
LINKS = st.lists(st.tuples(st.sampled_from(HOSTS), st.sampled_from(PATHS)), max_size=7)


@example(
    links=[
        ("www.garden.example", "/"),
        ("localhost:4000", "/"),
        ("localhost:4000", "//a"),
        ("old.example", "/a"),
    ],
    keeps=False,
    keys=(),
    several=True,
)
@given(LINKS, st.booleans(), st.sampled_from([(), ("id",), ("id", "ref")]), st.booleans())
def test_proposals_that_were_added_are_not_made_again(
    tmp_path_factory: pytest.TempPathFactory,
    links: list[tuple[str, str]],
    keeps: bool,
    keys: tuple[str, ...],
    several: bool,
) -> None:
    origins = (*SITE.origins, "https://other.example") if several else SITE.origins
    site = msgspec.structs.replace(
        SITE, keep_trailing_slash=keeps, query_keys=keys, origins=origins
    )
    path = tmp_path_factory.getbasetemp() / "export.xml"
    saved(path, *threads(*(f"https://{host}{tail}" for host, tail in links)))
    given_options: list[str] = []
    # A mapping can give a host the pages that let another host be recognized in the next round.
    for _ in range(len({host for host, _ in links}) + 1):
        with plan_of(path, site=site, mapping=given_options) as plan:
            found = mapping_proposals.propose(plan.threads, site)
        more = [each.mapping for each in found if each.mapping]
        assert not set(more) & set(given_options)
        given_options += more
        if not more:
            break
    assert more == []
    assert not any("archive" in each for each in given_options)


@pytest.mark.parametrize(
    ("name", "origin", "mappings"),
    [
        (
            "disqus/benbalter-1145.xml",
            "https://ben.balter.com",
            ["localhost:4000=ben.balter.com", "benbalter.github.com=ben.balter.com"],
        ),
        ("disqus/laisky-209.xml", "https://blog.laisky.com", ["localhost:27850=blog.laisky.com"]),
        ("disqus/evanlin-189.xml", "https://evanlin.com", ["www.evanlin.com=evanlin.com"]),
    ],
)
def test_the_hosts_of_a_real_export_are_mapped(name: str, origin: str, mappings: list[str]) -> None:
    site = msgspec.structs.replace(SITE, origins=(origin,))
    found = proposals(optional_tools.real_export(name), site)
    assert [each.mapping for each in found if "/" not in each.mapping] == mappings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "origin", "added"),
    [
        ("disqus/laisky-209.xml", "https://blog.laisky.com", "209 comments in 59 threads"),
        ("disqus/evanlin-189.xml", "https://evanlin.com", "189 comments in 55 threads"),
    ],
)
def test_a_real_export_is_imported_and_verified_with_the_proposed_options(
    app: flask.Flask, store: connection.Store, name: str, origin: str, added: str
) -> None:
    site_settings.add("garden", (origin,), scheme=SCHEME, now=NOW)
    path = optional_tools.real_export(name)
    lines = run(app, path, "--dry-run").output.splitlines()
    options = shlex.split(" ".join(line for line in lines if line.startswith("  --map ")))
    assert options
    first = run(app, path, *options)
    assert first.exit_code == 0, first.output
    assert f"Added {added}" in first.output
    before = rows()
    assert {row.thread.partition("/")[0] for row in before} == {origin.removeprefix("https://")}
    again = run(app, path, *options)
    assert again.exit_code == 0, again.output
    assert "Added 0 comments" in again.output
    assert rows() == before
