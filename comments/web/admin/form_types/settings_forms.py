"""The forms that change the settings of a site."""

from typing import Literal

import msgspec

from comments.domain import records, site_options
from comments.events import webhooks
from comments.moderation.policy import rules
from comments.web.admin.form_types import form_fields
from comments.web.http.decode.parameters import Typed


class RuleQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query that selects the rule to show in the form."""

    rule: Typed = ""


class PolicyForm(form_fields.SettingsForm, frozen=True):
    """The moderation settings of a site. An empty `close_after` keeps threads open."""

    policy: records.Policy | None = None
    reports: Typed | None = None
    close_after: Typed | None = None
    reason: Typed = ""


class SiteForm(form_fields.SettingsForm, frozen=True):
    """The settings of a site. Each list is one line with values separated by spaces or commas."""

    title: Typed | None = None
    origins: form_fields.TextLine | None = None
    query_keys: form_fields.TextLine | None = None
    keep_trailing_slash: form_fields.Box = ""
    ignore_www: form_fields.Box = ""
    ignore_amp: form_fields.Box = ""
    cdn_seconds: Typed | None = None
    freshness: Typed | None = None
    categories: form_fields.TextLine | None = None
    moderators: form_fields.TextLine | None = None
    reason: Typed = ""


class OptionsForm(form_fields.SettingsForm, frozen=True):
    """The options of a site that affect its readers. An empty `live` turns live updates off."""

    votes: form_fields.Box = ""
    website: form_fields.Box = ""
    guests: form_fields.Box = ""
    moderation: form_fields.Box = ""
    forms: form_fields.Box = ""
    claims: form_fields.Box = ""
    order: site_options.DefaultOrder | None = None
    theme: site_options.Theme | None = None
    language: Typed | None = None
    live: Typed | None = None
    images: form_fields.TextLine | None = None
    reason: Typed = ""


class ClassifierForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a classifier. An empty secret keeps the stored secret.

    A field is only required by the classifier that uses it: `key` by Akismet, `url` by a webhook.
    """

    act: Literal["set", "rotate", "remove"]
    name: Literal["akismet", "webhook"]
    url: Typed | None = None
    key: Typed | None = None
    holds: form_fields.Box = ""
    shows: form_fields.Box = ""
    everybody: form_fields.Box = ""
    reason: Typed = ""


class WebhookForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A webhook or chat to add, and the types of the messages that it gets.

    Telegram needs `token` and `chat`; all other forms need `url`.
    """

    kind: webhooks.MessageForm = webhooks.MessageForm.FLATTHREAD
    url: Typed | None = None
    token: Typed | None = None
    chat: Typed | None = None
    posted: form_fields.Box = ""
    edited: form_fields.Box = ""
    retracted: form_fields.Box = ""
    held: form_fields.Box = ""
    reason: Typed = ""


class WebhookChangeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of a webhook. Only "resend" and "discard" need `letter`, the id of a message."""

    act: Literal[
        "test", "enable", "rotate", "replace", "remove",
        "resend", "discard", "resend-all", "discard-all",
    ]  # fmt: skip
    id: Typed
    letter: Typed | None = None
    reason: Typed = ""


class PostLimitsForm(form_fields.SettingsForm, frozen=True):
    """The post limits of a site. Empty values use the defaults of the service."""

    proof_of_work: Typed | None = None
    form_seconds: Typed | None = None
    posts_per_network: Typed | None = None
    posts_per_author: Typed | None = None
    posts_per_thread: Typed | None = None
    same_texts: Typed | None = None
    reason: Typed = ""


class BudgetForm(form_fields.SettingsForm, frozen=True):
    """The daily budget of a site. An empty value means unlimited."""

    reads: Typed | None = None
    writes: Typed | None = None
    mails: Typed | None = None
    posts: Typed | None = None
    previews: Typed | None = None
    then: Literal["slow", "read-only"] | None = None
    reason: Typed = ""


class TurnstileForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of Turnstile. An empty secret keeps the stored one. Only "set" needs `key`."""

    act: Literal["set", "remove"]
    key: Typed | None = None
    secret: Typed = ""
    refuses: form_fields.Box = ""
    reason: Typed = ""


class RuleForm(form_fields.SettingsForm, frozen=True):
    """A rule from a form. `last` is the number of recent comments to test in a dry run."""

    act: Literal["try", "put"]
    action: rules.Action
    id: Typed = ""
    words: form_fields.TextLine | None = None
    names: form_fields.TextLine | None = None
    websites: form_fields.TextLine | None = None
    hosts: form_fields.TextLine | None = None
    scripts: form_fields.TextLine | None = None
    networks: form_fields.TextLine | None = None
    links: Typed | None = None
    approved_under: Typed | None = None
    repeated: Typed | None = None
    younger_than: Typed | None = None
    is_on: form_fields.Box = ""
    last: Typed = "1000"
    reason: Typed = ""


class RuleRemovalForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule to remove."""

    id: Typed
    reason: Typed = ""


class SiteKeyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key of a site to create or revoke: "public" needs `public`, and "remove" needs `id`."""

    act: Literal["shared", "public", "remove"]
    public: Typed | None = None
    id: Typed | None = None
