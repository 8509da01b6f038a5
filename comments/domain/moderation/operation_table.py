"""List what owners, moderators and operators can do, and where: by which command and on which page.

A test compares the table with the commands and with the console's routes, so no side can get an
operation that the table does not list. An operation that only one side offers says why.
`scripts/operations.py` draws docs/operations.md from the table; the summaries of commands and the
headings of pages are defined where they are used, because the table would only repeat them.
"""

import enum
from typing import NamedTuple


class Audience(enum.StrEnum):
    """Who may perform an operation. Owners may do all that moderators may."""

    MODERATOR = "moderator"
    SITE = "owner of the site"
    SERVICE = "owner of the service"
    OPERATOR = "operator"
    SELF = "everyone, for themselves"


class OperationRow(NamedTuple):
    """An operation. `reason` says why it has no command or no page, and is "" if it has both.

    `commands` and `routes` are separated by commas. A route is a method and a path below `/admin/`,
    where `SITE` stands for `sites/<site>`.
    """

    name: str
    audience: Audience
    commands: str = ""
    routes: str = ""
    reason: str = ""


_MODERATOR, _SITE, _SERVICE, _OPERATOR, _SELF = Audience
_FILES = "It needs the files of the machine or a stopped service."
_LINKS = "It needs a link or a browser."

SECTIONS: dict[str, tuple[OperationRow, ...]] = {
    "Websites": (
        OperationRow("Add a website", _SERVICE, "site add", "POST sites"),
        OperationRow("List the websites", _MODERATOR, "site list", "GET "),
        OperationRow(
            "Get started: see whether pages load the comments, and finish the setup",
            _SITE,
            routes="GET SITE/start, GET SITE/start/state, POST SITE/start/done",
            reason="The steps lead through the pages of the console.",
        ),
        OperationRow("Check a page of the website", _SITE, "site check", "POST SITE/start/check"),
        OperationRow("Show the settings", _SITE, "site show", "GET SITE/settings"),
        OperationRow(
            "Change the settings",
            _SITE,
            "site set",
            "POST SITE/settings, POST SITE/settings/options, POST SITE/settings/origin, "
            "POST SITE/start/origin",
        ),
        OperationRow(
            "Move a category with everything below it",
            _OPERATOR,
            "site move-category",
            reason="It changes every thread of the category, which takes time.",
        ),
        OperationRow("Rename a website", _SITE, "site rename", "POST SITE/settings/rename"),
        OperationRow(
            "Make a staging copy of a website, with or without its comments",
            _SERVICE,
            "site copy",
            "POST SITE/settings/copy",
        ),
        OperationRow("Delete a website", _SITE, "site delete", "POST SITE/settings/delete"),
        OperationRow("Take a deleted website back", _SITE, "site undelete", "POST SITE/undelete"),
        OperationRow(
            "Erase a deleted website before its 30 days are over",
            _OPERATOR,
            "site erase",
            reason="Nobody can undo it, so a person with access to the backups should do it.",
        ),
        OperationRow(
            "Change the number of levels of replies",
            _OPERATOR,
            "site rescheme",
            reason="It changes the stored place of every comment, and has options for operators.",
        ),
    ),
    "Comments": (
        OperationRow(
            "List comments by status",
            _MODERATOR,
            "moderate queue",
            "GET SITE/queue, GET SITE/reported, GET SITE/comments/<comment>",
        ),
        OperationRow(
            "Approve, reject, hide, hold, restore, pin or unpin comments, or mark them as spam",
            _MODERATOR,
            "moderate approve, moderate reject, moderate spam, moderate hide, moderate hold, "
            "moderate restore, moderate pin, moderate unpin",
            "POST SITE/queue, POST SITE/reported, POST SITE/comments/<comment>, "
            "POST SITE/thread, POST SITE/author",
        ),
        OperationRow(
            "Edit the text of a comment",
            _MODERATOR,
            "moderate edit",
            "POST SITE/comments/<comment>/text",
        ),
        OperationRow(
            "Reply to a comment",
            _MODERATOR,
            routes="POST SITE/comments/<comment>/reply",
            reason="The reply has the name of the account that is signed in.",
        ),
        OperationRow(
            "Decide about all comments that match a filter, see how far it is, and stop or undo it",
            _MODERATOR,
            "moderate bulk, moderate bulk-list, moderate bulk-stop, moderate bulk-undo",
            "GET SITE/queue/all, POST SITE/queue/all, GET SITE/queue/jobs/<job>, "
            "GET SITE/queue/jobs/<job>/state, POST SITE/queue/jobs/<job>",
        ),
        OperationRow("Show the audit log", _MODERATOR, "moderate log", "GET SITE/log"),
        OperationRow(
            "Undo an entry of the audit log", _MODERATOR, "moderate undo", "POST SITE/log"
        ),
    ),
    "Threads": (
        OperationRow("List the threads", _MODERATOR, "thread list", "GET SITE/threads"),
        OperationRow(
            "Show the stored tree of a thread", _SITE, "thread show", "GET SITE/thread/stored"
        ),
        OperationRow(
            "Lock a thread, or set its policy",
            _MODERATOR,
            "moderate thread",
            "POST SITE/thread/state",
        ),
        OperationRow(
            "Set a thread's title, address and categories",
            _MODERATOR,
            "thread set",
            "POST SITE/thread/title",
        ),
        OperationRow(
            "Move, merge and split threads, list these moves, and undo them",
            _SITE,
            "thread move, thread merge, thread split, thread moves, thread unmove",
            "GET SITE/moves, POST SITE/moves, POST SITE/moves/undo",
        ),
        OperationRow(
            "Find threads with the same comments",
            _SITE,
            "thread doubles",
            reason="It reads all comments of the site.",
        ),
        OperationRow(
            "Count the followers of a thread, and list those who agreed",
            _MODERATOR,
            "thread followers",
            "GET SITE/thread/followers",
        ),
        OperationRow(
            "Check a thread, repair it, or rebuild its pages",
            _SITE,
            "repair, thread rebuild",
            "POST SITE/thread/stored",
        ),
        OperationRow(
            "Recount the counters of a whole website",
            _OPERATOR,
            "recount",
            reason="It reads all comments. In the console, “Repair” recounts a thread.",
        ),
        OperationRow(
            "Compact changed threads", _OPERATOR, "compact", reason="The service does it by itself."
        ),
    ),
    "Moderation and spam": (
        OperationRow(
            "Show and change the moderation policy",
            _SITE,
            "moderate policy",
            "POST SITE/settings/policy",
        ),
        OperationRow("List the rules", _MODERATOR, "rule list", "GET SITE/rules"),
        OperationRow(
            "Add, change or test a rule", _MODERATOR, "rule add, rule test", "POST SITE/rules"
        ),
        OperationRow("Remove a rule", _MODERATOR, "rule remove", "POST SITE/rules/remove"),
        OperationRow(
            "Ban an author, or lift a ban",
            _MODERATOR,
            "moderate ban, moderate unban",
            "POST SITE/bans",
        ),
        OperationRow(
            "Link two authors who are one person, end a link or a claim, or allow claims again",
            _MODERATOR,
            "moderate links, moderate link, moderate unlink, moderate allow-claims",
            "POST SITE/author/links",
        ),
        OperationRow("Show the classifiers", _SITE, "classifier show", "GET SITE/advisers"),
        OperationRow(
            "Enable, change or disable a classifier",
            _SITE,
            "classifier akismet, classifier webhook, classifier rotate, classifier remove",
            "POST SITE/advisers",
        ),
        OperationRow(
            "Require a Turnstile token",
            _SITE,
            "post-limits turnstile, post-limits no-turnstile",
            "POST SITE/turnstile",
        ),
        OperationRow(
            "Show the limits for posts, the budget and its use",
            _SITE,
            "post-limits show, budget show",
            "GET SITE/limits",
        ),
        OperationRow("Change the limits for posts", _SITE, "post-limits set", "POST SITE/limits"),
        OperationRow("Change the daily budget", _SITE, "budget set", "POST SITE/limits/budget"),
    ),
    "People": (
        OperationRow(
            "List owners, moderators and invitations",
            _SERVICE,
            "account list, account invitations",
            "GET people, GET people/account",
        ),
        OperationRow(
            "Invite an owner or a moderator", _SERVICE, "account invite", "POST people/invite"
        ),
        OperationRow(
            "Withdraw an invitation", _SERVICE, "account withdraw", "POST people/withdraw"
        ),
        OperationRow(
            "Change a role, end sessions, reset a password, or remove an account",
            _SERVICE,
            "account role, account sign-out, account reset, account remove",
            "POST people/account",
        ),
        OperationRow(
            "Invite moderators of a site, make them owners of the site, or take their role",
            _SITE,
            routes=(
                "GET SITE/team, POST SITE/team/invite, POST SITE/team/withdraw, POST SITE/team/role"
            ),
            reason="The commands for all accounts do this too.",
        ),
        OperationRow(
            "Show the security log of an account",
            _SERVICE,
            "account log",
            "GET people/account, GET account",
        ),
        OperationRow(
            "Create an account with a password",
            _OPERATOR,
            "account add",
            reason="In the console, people choose their own password through an invitation.",
        ),
        OperationRow(
            "List the authors of a site, and the comments of an author",
            _MODERATOR,
            "stats commenters",
            "GET SITE/authors, GET SITE/author",
        ),
        OperationRow(
            "Export the data of a person",
            _SERVICE,
            "author export",
            "GET people/data, POST people/data/export",
        ),
        OperationRow("Erase a person", _SERVICE, "author erase", "POST people/data/erase"),
        OperationRow("Erase a mail address", _SERVICE, "forget", "POST people/data/forget"),
        OperationRow(
            "Sign in, sign out, accept an invitation, choose a new password",
            _SELF,
            routes=(
                "GET sign-in, GET welcome, GET reset, POST sign-in, POST sign-in/code, "
                "POST sign-in/passkey/options, POST sign-in/passkey, "
                "POST sign-in/provider, POST sign-out, POST sign-out/everywhere, POST welcome, "
                "POST welcome/accept, POST welcome/provider, POST reset"
            ),
            reason=_LINKS,
        ),
        OperationRow(
            "Change your password, authenticator, recovery codes, passkeys, providers and sessions",
            _SELF,
            routes=(
                "GET account, POST account/password, POST account/authenticator, "
                "POST account/authenticator/remove, POST account/recovery, POST account/provider, "
                "POST account/provider/remove, POST account/moderation/end, "
                "POST account/passkeys/options, POST account/passkeys, "
                "POST account/passkeys/remove"
            ),
            reason=_LINKS,
        ),
    ),
    "Sign-in": (
        OperationRow("List the providers", _SERVICE, "provider list", "GET providers"),
        OperationRow("Add a provider", _SERVICE, "provider add", "POST providers"),
        OperationRow(
            "Check a provider, choose who can use it, or remove it",
            _SERVICE,
            "provider check, provider offer, provider withdraw, provider remove",
            "POST providers/change",
        ),
        OperationRow(
            "List the keys with which a website signs in its readers",
            _SITE,
            "site-key list",
            "GET SITE/sign-in",
        ),
        OperationRow(
            "Add or revoke a key of a website",
            _SITE,
            "site-key add, site-key remove",
            "POST SITE/sign-in/keys",
        ),
    ),
    "Notifications": (
        OperationRow(
            "Show who gets mail about the comments",
            _MODERATOR,
            "notification list",
            "GET SITE/notifications",
        ),
        OperationRow(
            "Choose the mail for oneself or, as an owner, for others",
            _MODERATOR,
            "notification set",
            "POST SITE/notifications",
        ),
        OperationRow(
            "Send a test mail",
            _MODERATOR,
            "notification test",
            "POST SITE/notifications/test",
        ),
    ),
    "Connections": (
        OperationRow(
            "List the webhooks and their last results",
            _SITE,
            "webhook list",
            "GET SITE/connections",
        ),
        OperationRow("Add a webhook or a chat", _SITE, "webhook add", "POST SITE/connections"),
        OperationRow(
            "Test, enable or remove a webhook, change its secret, or resend its failed messages",
            _SITE,
            "webhook test, webhook on, webhook rotate, webhook remove",
            "POST SITE/connections/change",
        ),
    ),
    "Statistics": (
        OperationRow(
            "Show numbers of comments and commenters",
            _MODERATOR,
            "stats site, stats categories, stats days, stats months, stats threads",
            "GET SITE/statistics",
        ),
        OperationRow(
            "Rank the pages, people and hours of a period",
            _MODERATOR,
            "stats pages, stats people, stats hours",
            "GET SITE/statistics, GET SITE/statistics/<table>.csv",
        ),
        OperationRow(
            "Count the commenters of an audience", _SITE, "stats audience", "GET SITE/audiences"
        ),
        OperationRow(
            "Show the declared counters and their numbers",
            _SITE,
            "counter list, counter show",
            "GET SITE/counters",
        ),
        OperationRow(
            "Declare or change a counter, or show its cost",
            _SITE,
            "counter add, counter change, counter cost",
            "POST SITE/counters",
        ),
        OperationRow("Remove a counter", _SITE, "counter remove", "POST SITE/counters/remove"),
    ),
    "Data": (
        OperationRow("Export a website", _SITE, "export", "GET SITE/export"),
        OperationRow(
            "Import a file, after a check",
            _SITE,
            "import",
            "POST SITE/imports, POST SITE/imports/upload, POST SITE/imports/part, "
            "POST SITE/imports/finish, GET SITE/imports/status",
        ),
        OperationRow(
            "List the imports, and show what an undo removes",
            _SITE,
            "imports list, imports show",
            "GET SITE/imports, GET SITE/imports/undo",
        ),
        OperationRow("Undo an import", _SITE, "imports undo", "POST SITE/imports/undo"),
        OperationRow(
            "Compare an export with the comments that were imported from it",
            _OPERATOR,
            "verify",
            reason="The console compares each file after its import.",
        ),
    ),
    "The service": (
        OperationRow(
            "Show the version, and the settings with their sources",
            _SERVICE,
            routes="GET service",
            reason="On the machine, `--version` and the environment show the same.",
        ),
        OperationRow(
            "Connect, test and remove the mail server",
            _SERVICE,
            routes="GET mail, POST mail, POST mail/test, POST mail/remove",
            reason="On the machine, `SMTP_URL` names the mail server, and `doctor` checks it.",
        ),
        OperationRow("Check the service", _SERVICE, "doctor", "GET health, POST health/check"),
        OperationRow(
            "Show pending deliveries and dead letters",
            _SERVICE,
            "delivery status, delivery dead, delivery show",
            "GET health",
        ),
        OperationRow(
            "Retry or discard a dead letter, or all of them",
            _SERVICE,
            "delivery revive, delivery drop",
            "POST health/letters",
        ),
        OperationRow(
            "Hold all pending messages before a restored database is used",
            _OPERATOR,
            "delivery hold",
            reason=_FILES,
        ),
        OperationRow("Back up and restore the store", _OPERATOR, "backup, restore", reason=_FILES),
        OperationRow("Upgrade the store", _OPERATOR, "upgrade", reason=_FILES),
        OperationRow(
            "Encrypt stored data again after a change of SECRET",
            _OPERATOR,
            "secret renew",
            reason=_FILES,
        ),
        OperationRow("Start the service", _OPERATOR, "serve", reason=_FILES),
    ),
}
