"""The texts that chats (Slack, Discord and Telegram) get about a site's comments.

The caller passes the comment as it is when the message is sent. Names, titles and texts are cleaned
as for mail (`plain_words`), so they contain no links and no mentions, and then escaped for the
chat.
"""

from comments.domain import records
from comments.domain.languages import catalogue
from comments.domain.moderation import ruling_texts
from comments.events import webhooks
from comments.notifications.mail import plain_words

t = catalogue.ENGLISH.text

_OPENINGS = {
    webhooks.Type.POSTED: "admin.chat-posted",
    webhooks.Type.EDITED: "admin.chat-edited",
    webhooks.Type.HELD: "admin.chat-held",
}
MAX_TEXT = 200  # Maximum number of a comment's characters that a message shows.
_MAX_WORDS = 100  # Maximum number of characters of a name, a title and a reason.


def text(
    public_url: str,
    form: webhooks.MessageForm,
    type_: webhooks.Type,
    case: records.Case,
    thread: records.Thread | None,
) -> str:
    """Return the text about a comment; the links are missing if `public_url` is empty.

    The text about a removed comment contains only the title of its page.
    """
    comment = case.comment

    def safe_line(words: str) -> str:
        return webhooks.escape(form, plain_words.line(words)[:_MAX_WORDS])

    page = safe_line(thread.title) if thread and thread.title else comment.site
    desk = f"{public_url}/admin/sites/{comment.site}" if public_url else ""
    if type_ is webhooks.Type.RETRACTED:
        return t("admin.chat-retracted", page=page)
    name = safe_line(comment.author.name) or t("comment-mail.someone")
    lines = [t(_OPENINGS[type_], name=name, page=page), _excerpt(form, comment)]
    if type_ is webhooks.Type.HELD:
        if why := safe_line(ruling_texts.decision_text(case.rule, case.why)):
            lines.append(t("admin.chat-why", reason=why))
        place = f"{desk}/queue"
    else:
        place = f"{desk}/comments/{comment.id}"
    return "\n".join([*lines, place] if desk else lines)


def _excerpt(form: webhooks.MessageForm, comment: records.Comment) -> str:
    words = " ".join(plain_words.words(comment.body).split())
    cut = words if len(words) <= MAX_TEXT else f"{words[:MAX_TEXT].rstrip()}…"
    return webhooks.escape(form, cut)
