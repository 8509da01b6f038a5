"""Moderators edit and answer comments from the console's page of a comment."""

from comments.domain import presentation, records
from comments.domain.records import Status, Verb
from comments.moderation import decisions
from comments.moderation.policy import policy_changes
from comments.sites import site_settings
from comments.tree.lists import ordered_query
from tests.support.html import html_validator
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")


def test_a_moderator_edits_a_text_from_its_page(desk: Desk, site: records.Site) -> None:
    row = sample_threads.post(site, "Call 555-1234 & ask *Eve*")
    path = f"/comments/{row.id}"
    page = desk.page(path)
    assert html_validator.complaints([page]) == [[]]
    assert ">\nCall 555-1234 &amp; ask *Eve*</textarea>" in page
    body = "Ask\r\n\r\n*Eve*"
    desk.settle(f"{path}/text", revision=str(row.revision), body=body, reason="a number")
    case = decisions.case("demo", row.id)
    assert case.comment.html == "<p>Ask</p>\n<p><em>Eve</em></p>\n"
    assert "Approved → Approved" not in desk.page(path)
    assert "Edited the text" in desk.page(path)
    # Another moderator's form showed the former text.
    again = desk.settle(f"{path}/text", status=412, revision=str(row.revision), body="x")
    assert "edited somewhere else" in again
    refused = desk.settle(f"{path}/text", status=400, body=" ", reason="kept")
    assert 'value="kept"' in refused


def test_a_moderator_replies_with_the_mark_of_the_staff(desk: Desk, site: records.Site) -> None:
    row = sample_threads.post(site, "A question")
    policy_changes.set_policy("demo", ADA, now=sample_threads.START, policy=records.Policy.ALL)
    # Readers behind the moderator's network have used up its limit.
    site_settings.change("demo", guard={"posts_per_network": 1, "posts_per_author": 1})
    for number in range(3):
        desk.settle(
            f"/comments/{row.id}/reply", body=f"No. {number}", key=f"0123456789abcde{number}"
        )
    for _ in range(2):  # The second form is the same one, sent again.
        desk.settle(f"/comments/{row.id}/reply", body="An *answer*", key="0123456789abcdef")
    *_, reply = ordered_query.thread(sample_threads.name_of(site))
    assert (reply.parent, reply.author.name, reply.html) == (
        row.id, "Bob", "<p>An <em>answer</em></p>\n",
    )  # fmt: skip
    assert presentation.kind(reply.author) is presentation.AuthorKind.STAFF
    assert reply.status is Status.APPROVED
    decisions.decide("demo", row.id, Verb.HOLD, ADA, now=sample_threads.START)
    assert "An answer" not in desk.page(f"/comments/{row.id}")
