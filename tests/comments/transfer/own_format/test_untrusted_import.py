"""An export of Flatthread that an owner uploads cannot act for other people or other sites.

The owner of the site "garden" uploads files that they have written by hand.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import flask
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.ids import author_ids, imported_ids
from comments.events import audit_log
from comments.moderation.policy import rulebook
from comments.sites import site_settings
from comments.store import connection
from comments.store.models import comment_rows
from comments.transfer import import_source
from comments.transfer.formats import flatthread
from comments.transfer.importing import import_journal
from comments.transfer.uploads import upload_steps, upload_store
from comments.upkeep.integrity import repair
from tests.support import stored_state
from tests.support.exporting import site_exports
from tests.support.histories import counter_oracle
from tests.support.importing import uploading
from tests.support.importing.samples import flatthread as samples
from tests.support.threads import sample_exports, sample_threads, sample_votes
from tests.support.threads import undone_imports as undone
from tests.support.threads.sample_exports import NOW, SCHEME

VICTIM = "a:victim"
PAGE = samples.ROSES


@pytest.fixture
def victim(store: connection.Store) -> records.Site:
    """Another site of the service, with the same page."""
    return site_settings.add("victim", ["https://garden.example"], scheme=SCHEME, now=NOW)


def file(*lines: dict[str, Any]) -> bytes:
    return samples.lines(samples.HEADER, *lines, {"kind": "end"})


def upload(data: bytes, site: str = "garden") -> upload_store.Upload:
    return uploading.imported(site, data)


def below(comment_id: str) -> dict[str, str]:
    return {"parent": comment_id, "reply_to": comment_id}


def rows(site: str = "garden") -> list[records.Comment]:
    return [row for row in sample_exports.rows() if row.site == site]


def derived(source: str, site: str = "garden") -> str:
    return imported_ids.comment_id(site, imported_ids.OWN, source)


def around(app: flask.Flask, site: str, thread: str, address: str) -> dict[str, Any]:
    """Return the comment to which a permalink leads."""
    said = app.test_client().get(
        f"/api/v1/sites/{site}/comments",
        query_string={"thread": thread, "around": address, "limit": 1},
    )
    assert said.status_code == 200, said.text
    (found,) = said.json["comments"]
    assert said.json["around"] == found["id"]
    return dict(found)


def test_comments_get_new_ids_and_former_permalinks_lead_to_them(
    app: flask.Flask, garden: records.Site
) -> None:
    upload(samples.SANE.data)
    assert {row.id for row in rows()} == {derived(each.id) for each in samples.SANE.comments}
    assert app.test_client().get(f"/api/v1/comments/{samples.id_of('a')}").status_code == 404
    for letter in "abd":
        found = around(app, "garden", PAGE, samples.id_of(letter))
        assert found["id"] == derived(samples.id_of(letter))


def test_a_form_below_a_former_permalink_answers_the_comment(
    app: flask.Flask, garden: records.Site
) -> None:
    site_settings.change("garden", options={"forms": True})
    upload(samples.SANE.data.replace(b'"closed"', b'"open"').replace(b'"sha256"', b'"other"'))
    query = {"thread": PAGE, "reply": samples.id_of("a")}
    said = app.test_client().get("/embed/garden", query_string=query)
    assert said.status_code == 200
    assert f'name="parent" value="{derived(samples.id_of("a"))}"' in said.text


def test_a_file_changes_no_comment_of_another_site(
    app: flask.Flask, garden: records.Site, victim: records.Site
) -> None:
    theirs = sample_threads.post(victim, "theirs", thread=PAGE)
    before = rows("victim")
    upload(
        file(
            samples.thread(named_by=theirs.id),
            samples.comment("a", 0, id=theirs.id, slug=theirs.slug, text="mine"),
            samples.comment("b", 1, text="below mine") | below(theirs.id),
        )
    )
    assert rows("victim") == before
    assert [row.body for row in rows()] == ["mine", "below mine"]
    assert rows()[1].reply_to == derived(theirs.id)
    for address in (theirs.id, theirs.slug):
        assert around(app, "victim", PAGE, address)["html"] == "<p>theirs</p>\n"
    said = app.test_client().get(f"/api/v1/comments/{theirs.id}").json
    assert said["comment"]["html"] == "<p>theirs</p>\n"
    assert around(app, "garden", PAGE, theirs.id)["html"] == "<p>mine</p>\n"


def test_a_reply_to_another_sites_comment_becomes_a_root(
    garden: records.Site, victim: records.Site
) -> None:
    theirs = sample_threads.post(victim, "theirs", thread=PAGE)
    upload(file(samples.thread(), samples.comment("a", 1) | below(theirs.id)))
    (row,) = rows()
    assert (row.parent, row.reply_to, row.level) == (None, None, 0)
    (found,) = rows("victim")
    assert found == theirs


def test_content_that_an_undo_erased_on_another_site_stays_erased(
    store: connection.Store,
) -> None:
    undone.Clock.current()
    origins = sample_exports.SITE.origins
    site = site_settings.add("garden", origins, scheme=undone.SCHEME, now=NOW)
    site_settings.add("mallory", origins, scheme=undone.SCHEME, now=NOW)
    upload(file(samples.thread(), samples.comment("a", 0, text="theirs")))
    theirs = derived(samples.id_of("a"))
    sample_threads.post(site, "reply", theirs, thread=PAGE)
    undone.settle()
    (journal,) = import_journal.recent_imports("garden")
    assert undone.undo(journal, NOW).kept == 1
    undone.settle()
    before = rows()
    upload(file(samples.thread(), samples.comment("a", 0, id=theirs, text="mine")), "mallory")
    assert rows() == before
    assert [row.body for row in rows("mallory")] == ["mine"]


def test_slugs_of_a_file_lead_only_to_comments_of_its_thread(
    app: flask.Flask, garden: records.Site
) -> None:
    here = sample_threads.post(garden, "here", thread=PAGE)
    elsewhere = sample_threads.post(garden, "elsewhere", thread="other")
    slugs: dict[str, Any] = {"slug": here.slug, "former_slugs": ["7-7", elsewhere.slug]}
    upload(file(samples.thread(), samples.comment("a", 5, **slugs, text="mine")))
    assert around(app, "garden", PAGE, here.slug)["html"] == "<p>here</p>\n"
    assert around(app, "garden", "other", elsewhere.slug)["html"] == "<p>elsewhere</p>\n"
    assert around(app, "garden", PAGE, "7-7")["html"] == "<p>mine</p>\n"


def test_nobody_becomes_an_author_of_this_service(
    app: flask.Flask, garden: records.Site, victim: records.Site
) -> None:
    imported = upload(
        file(samples.thread(), samples.comment("z", 0, author={"id": "i:x", "name": "Ada"})),
        "victim",
    )
    assert imported.added == 1
    (known,) = rows("victim")
    ids = [VICTIM, "g:ada", known.author.id]
    upload(
        file(
            samples.thread(),
            *(
                samples.comment(letter, number, author={"id": each, "name": "Ada"})
                for number, (letter, each) in enumerate(zip("abcdef", ids * 2, strict=True))
            ),
        )
    )
    found = [row.author.id for row in rows()]
    assert all(each.startswith(author_ids.IMPORTED) for each in found)
    assert not set(found) & {*ids, "i:x"}
    assert found[:3] == found[3:]  # One person stays one person
    assert len(set(found)) == 3


def test_the_same_person_has_the_same_id_in_every_file(garden: records.Site) -> None:
    ada = {"id": VICTIM, "name": "Ada"}
    renamed = {"id": VICTIM, "name": "Ada L.", "email": "ada@private.example"}
    upload(file(samples.thread(), samples.comment("a", 0, author=ada)))
    upload(file(samples.thread(), samples.comment("b", 1, author=renamed)))
    first, second = rows()
    assert first.author.id == second.author.id


def test_an_imported_author_is_no_member_of_the_staff(
    app: flask.Flask, garden: records.Site
) -> None:
    staff = {"id": VICTIM, "name": "Owner", "staff": True}
    upload(file(samples.thread(), samples.comment("a", 0, author=staff)))
    found = around(app, "garden", PAGE, samples.id_of("a"))
    assert found["author"] == {"name": "Owner", "website": ""}  # No kind
    assert not rows()[0].author.is_staff


def test_votes_are_only_numbers(garden: records.Site) -> None:
    cast = {VICTIM: 1, "g:bob": 1, "i:eve": -1}
    upload(file(samples.thread(), samples.comment("a", 0, up=5, down=2, votes=cast)))
    (row,) = rows()
    assert (row.up, row.down, row.score) == (5, 2, 3)
    assert sample_votes.cast() == {}
    counter_oracle.assert_counted()
    sample_votes.vote(row, "bob", -1)  # The person of the file can still vote
    sample_votes.count_waiting()
    assert sample_votes.stored(row.id) == (5, 3, 2)


def test_impossible_votes_and_times_are_bounded_and_reported(
    garden: records.Site, tmp_path: Path
) -> None:
    future = {"created": "9999-12-31T23:59:59Z", "edited": "9999-12-31T23:59:59Z"}
    path = tmp_path / "export.jsonl"
    path.write_bytes(
        file(samples.thread(), samples.comment("a", 0, up=999_999_999, down=7, **future))
    )
    assert [
        each.what
        for each in flatthread.read_untrusted(path)
        if isinstance(each, import_source.Corrected)
    ] == [flatthread.LATER, flatthread.MANY]
    upload(path.read_bytes())
    (row,) = rows()
    assert (row.up, row.down) == (flatthread.MOST_VOTES, 7)
    assert row.created == row.edited == datetime.fromisoformat(str(samples.HEADER["time"]))


def test_an_export_of_the_future_is_refused(garden: records.Site, tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    header = samples.HEADER | {"time": "9999-01-01T00:00:00Z"}
    path.write_bytes(samples.lines(header, {"kind": "end"}))
    with pytest.raises(errors.BadImport, match="is in the future"):
        list(flatthread.read_untrusted(path))


def test_no_decision_of_a_file_is_stored(garden: records.Site) -> None:
    decided: dict[str, Any] = {
        "status": "rejected",
        "rule": records.BY_MODERATOR,
        "why": "spam of the owner",
        "reasons": [{"code": "links", "params": {"count": 3}}],
        "stood": "approved",
        "judged": "2025-06-01T00:00:00Z",
        "source": "isso:7",
    }
    upload(file(samples.thread(), samples.comment("a", 0, **decided)))
    (row,) = stored_state.rows("Comment")
    values = row.properties
    assert values["status"].string_value == "rejected"
    for name in ("rule", "why", "reasons", "stood"):
        assert not values[name].string_value, name
    assert not values["judged"].timestamp_value.seconds
    assert values["source"].string_value == f"flatthread:{samples.id_of('a')}"


def test_settings_counters_bans_and_the_audit_log_are_left_out(
    garden: records.Site, victim: records.Site
) -> None:
    book, site = rulebook.from_store("garden"), site_settings.get("garden")
    entry = {"kind": "audit", "id": "z" * 26, "subject": samples.id_of("a"), "verb": "approve"}
    done = upload(
        file(
            {
                "kind": "settings",
                "origins": ["https://other.example"],
                "scheme": {"digits": "abc", "width": 2, "levels": 1},
                "moderators": ["eve@other.example"],
                "query_keys": ["p"],
                "moderation": {
                    "policy": "off",
                    "rules": [{"id": "x"}, {"id": "y"}],
                    "bans": [{"author": VICTIM}],
                },
            },
            {"kind": "counter", "name": "liked", "where": ["up >= 1"]},
            samples.thread(),
            samples.comment("a", 0),
            {**entry, "actor": VICTIM, "at": "2025-01-01T00:00:00Z"},
            {**entry, "actor": "cli", "at": "2025-01-01T00:00:00Z"},
        )
    )
    assert rulebook.from_store("garden") == book
    site_settings.COPIES.get().drop("garden")
    assert site_settings.get("garden") == site
    assert list(stored_state.rows("DeclaredCounter")) == []
    assert [each.verb for each in audit_log.log("garden")] == ["import"]
    assert {
        "Left out: addresses of moderators (1)",
        "Left out: bans of authors (1)",
        "Left out: moderation rules (2)",
        "Left out: counters, which an operator can declare again (1)",
        "Left out: entries of the audit log (2)",
    } <= set(done.report)
    assert "eve@" not in str(done)


def test_threads_keep_their_state_policy_title_and_categories(garden: records.Site) -> None:
    upload(
        file(
            samples.thread(
                title="Roses",
                state="closed",
                policy="read-only",
                categories=["plants"],
                own=["title"],
                named_by=samples.id_of("a"),
                created="2024-01-01T00:00:00Z",
            ),
            samples.comment("a", 0, pinned=True, page={"title": "Other title"}),
        )
    )
    (row,) = stored_state.rows("Thread")
    values = {name: row.properties[name].string_value for name in ("title", "state", "policy")}
    assert values == {"title": "Roses", "state": "closed", "policy": "read-only"}
    assert stored_state.categories() == {
        comment_rows.thread_key_name(records.ThreadName("garden", PAGE)): ("plants",)
    }
    assert rows()[0].pinned


def test_addresses_are_stored_encrypted_and_never_shown(garden: records.Site) -> None:
    ada = {"id": VICTIM, "name": "Ada", "email": "ada@private.example"}
    done = upload(file(samples.thread(), samples.comment("a", 0, author=ada)))
    (row,) = rows()
    assert row.author.email
    assert "private" not in row.author.email
    assert "private" not in str(done)


def test_texts_are_rendered_again(garden: records.Site) -> None:
    hostile = "<script>alert(1)</script><b onclick=x>bold</b>"
    upload(
        file(
            samples.thread(title="<script>"),
            samples.comment("a", 0, text="plain", html=hostile),
            samples.comment("b", 1, text=hostile, markup="html"),
            samples.comment("c", 2, text=hostile),
        )
    )
    assert [row.html for row in rows()] == [
        "<p>plain</p>\n",
        "<b>bold</b>",
        "<p>&lt;script&gt;alert(1)&lt;/script&gt;&lt;b onclick=x&gt;bold&lt;/b&gt;</p>\n",
    ]


def test_large_numbers_leave_room_for_comments(garden: records.Site) -> None:
    upload(
        file(
            samples.thread(), samples.comment("a", 1_000_000), samples.comment("b", 1_000_000, "a")
        )
    )
    first, second = rows()
    later = sample_threads.post(garden, "later", thread=PAGE)
    below = sample_threads.post(garden, "below", first.id, thread=PAGE)
    name = records.ThreadName("garden", PAGE)
    assert sample_threads.listed(garden, PAGE) == [first.body, second.body, "below", "later"]
    assert (later.number, below.number) == (1_000_001, 1_000_001)
    assert repair.find_problems(SCHEME, name) == []


def test_the_same_file_again_adds_nothing(garden: records.Site) -> None:
    upload(samples.SANE.data)
    before = sample_exports.rows()
    again = upload(samples.SANE.data)
    assert (again.added, again.present) == (0, len(before))
    assert (again.explained, again.unexplained) == (0, 0)
    assert sample_exports.rows() == before


def test_an_export_uploaded_to_its_own_site_adds_nothing(
    garden: records.Site, tmp_path: Path
) -> None:
    grown = sample_threads.grow(garden, sample_threads.TREE, thread=PAGE)
    sample_votes.vote(grown["1"], "bob")
    sample_votes.count_waiting()
    path = site_exports.save(tmp_path / "x.jsonl", "garden")
    before = sample_exports.rows()
    done = upload(path.read_bytes())
    assert (done.added, done.present, done.unexplained) == (0, len(grown), 0)
    assert done.explained
    assert sample_exports.rows() == before
    assert list(sample_votes.cast()) == [grown["1"].id]


@pytest.mark.parametrize("is_first_trusted", [True, False])
def test_an_operator_and_an_owner_import_the_same_comments_once(
    app: flask.Flask, garden: records.Site, tmp_path: Path, *, is_first_trusted: bool
) -> None:
    path = tmp_path / "export.jsonl"
    path.write_bytes(samples.SANE.data)
    command = ["import", str(path), "--site", "garden"]

    def by_operator() -> str:
        return app.test_cli_runner().invoke(args=command).output

    count = len(samples.SANE.comments)
    if is_first_trusted:
        assert f"Added {count} comments" in by_operator()
        done = upload(samples.SANE.data)
        assert (done.added, done.present, done.unexplained) == (0, count, 0)
    else:
        upload(samples.SANE.data)
        assert "Added 0 comments" in by_operator()
    assert len(rows()) == count
    assert len(import_journal.recent_imports("garden")) == 2


def test_verify_reads_a_file_as_it_was_imported(
    app: flask.Flask, garden: records.Site, tmp_path: Path
) -> None:
    path = tmp_path / "export.jsonl"
    path.write_bytes(samples.SANE.data)
    upload(samples.SANE.data)
    said = app.test_cli_runner().invoke(args=["verify", str(path), "--site", "garden"])
    assert said.exit_code == 0, said.output
    assert "Verified 7 comments: the store matches the file." in said.output


def test_an_untrusted_file_gives_no_settings(
    app: flask.Flask, garden: records.Site, tmp_path: Path
) -> None:
    path = tmp_path / "export.jsonl"
    path.write_bytes(samples.SANE.data)
    command = ["import", str(path), "--site", "garden", "--untrusted", "--settings"]
    said = app.test_cli_runner().invoke(args=command)
    assert said.exit_code == 2
    assert "--untrusted takes no settings from the file. Omit --settings." in said.output
    assert sample_exports.entities() == 0


def test_an_undo_removes_an_upload(store: connection.Store) -> None:
    undone.Clock.current()
    site_settings.add("garden", sample_exports.SITE.origins, scheme=undone.SCHEME, now=NOW)
    before = undone.plain()
    upload(samples.SANE.data)
    undone.deliver()
    undone.assert_sound()
    (journal,) = import_journal.recent_imports("garden")
    undone.settle()
    ended = undone.undo(journal, NOW)
    assert (ended.removed, ended.kept) == (7, 0)
    undone.settle()
    undone.assert_sound()
    assert undone.plain() == before


def test_pages_that_have_moved_are_proposed_and_mapped(garden: records.Site) -> None:
    data = file(
        samples.thread("old.example/roses"),
        samples.comment("a", 0, thread="old.example/roses", created="2025-01-02T00:00:00Z"),
        samples.thread("old.example/tulips"),
        samples.comment("b", 0, thread="old.example/tulips"),
        samples.thread(PAGE),
        samples.comment("c", 0, created="2025-01-01T00:00:00Z"),
    )
    clock = uploading.Clock()
    checked = uploading.checked("garden", data, clock)
    assert [each.mapping for each in checked.proposed if each.mapping] == [
        "old.example=garden.example"
    ]
    upload_store.check_again("garden", checked.id, ("old.example=garden.example",), now=clock())
    assert upload_steps.do_next_step("garden", sample_exports.SECRET, clock=clock)
    uploading.confirm("garden", checked.id, clock)
    assert upload_steps.do_next_step("garden", sample_exports.SECRET, clock=clock)
    done = uploading.current("garden")
    assert (done.added, done.unexplained) == (3, 0)
    # The comments of merged pages are in the order of their dates.
    assert [(row.thread, row.body) for row in rows()] == [
        (PAGE, "Text c"), (PAGE, "Text a"), ("garden.example/tulips", "Text b"),
    ]  # fmt: skip


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.text(max_size=5),
    st.sampled_from(["a:x", "g:ada", "i:x", "approved", "2025-01-01T00:00:00Z", "1-1", "a" * 26]),
    st.dictionaries(st.sampled_from(["id", "staff", "name", "g:x"]), st.just(1), max_size=2),
)
CHANGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20), VALUES), min_size=1, max_size=3)


@given(changes=CHANGES)
def test_whatever_a_file_says_nothing_needs_trust(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int, Any]]
) -> None:
    lines = [json.loads(each) for each in samples.SANE.data.splitlines()][1:-1]
    for line, field, value in changes:
        chosen = lines[line % len(lines)]
        names = [name for name in chosen if name != "kind"]
        chosen[names[field % len(names)]] = value
    path = tmp_path_factory.getbasetemp() / "untrusted.jsonl"
    path.write_bytes(file(*lines))
    try:
        plan = sample_exports.planned_by(flatthread.read_untrusted, path)
    except errors.BadImport:
        return
    with plan:
        ids = {derived(node.id) for thread in plan.threads for node in thread.nodes}
        for batch in plan.batches():
            for each in (node for thread in batch for node in thread.nodes):
                assert each.id in ids
                assert each.reply_to is None or each.reply_to in ids
                author = each.author.id
                assert not author or author.startswith(author_ids.IMPORTED)
                assert not each.author.is_staff
                assert each.kept is not None
                assert each.kept.author is None
                assert (each.kept.votes, each.kept.rule, each.kept.judged) == ((), "", None)
