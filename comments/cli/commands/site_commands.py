"""Add, list, change and delete websites: `site`."""

from typing import Any

import click

from comments.accounts import moderation_sessions
from comments.cli import console
from comments.cli.commands import moderation_commands
from comments.domain import records, site_options
from comments.domain.ids import site_ids
from comments.domain.languages import catalogue, error_texts
from comments.domain.text.addresses import web_origins
from comments.domain.text.shown_values import quantity
from comments.moderation.policy import category_moves
from comments.sites import page_check, site_aliases, site_deletion, site_settings, site_setup
from comments.transfer.moves import page_rules
from comments.transfer.uploads import site_copy, upload_steps, upload_store
from comments.upkeep import site_erasure
from comments.upkeep.migrations import rescheming

site = console.Group("site")
# The options of `site set` that change the site's own fields; the others change its `options`.
_OF_SITE = (
    "title", "origins", "added_origins", "query_keys", "keep_trailing_slash", "ignore_www",
    "ignore_amp", "cdn_seconds", "freshness", "filed", "moderators",
)  # fmt: skip
_EMPTIED = {"query_keys", "filed", "moderators", "images"}  # Options that the value '' empties


def _checked_id(_context: click.Context, _parameter: click.Parameter, given: str) -> str:
    with console.refusing():
        return site_ids.check(given)


def _checked_origins(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    with console.refusing():
        return tuple(map(web_origins.check, given))


# Arguments are checked while they are parsed, because a refused command must not create a store.
@site.command("add", creates=True)
@click.argument("site_id", metavar="ID", callback=_checked_id)
@click.option(
    "--origin", "origins", multiple=True, required=True, callback=_checked_origins,
    help="Origin of its pages, e.g. https://example.com.",
)  # fmt: skip
def _add_site(site_id: str, origins: tuple[str, ...]) -> None:
    """Add a website and the origins of its pages. If the store does not exist, it is created."""
    added = site_settings.add(
        site_id, origins, scheme=console.settings().scheme, now=console.now(), ignore_www=True
    )
    click.echo(f"Added {added.id} ({', '.join(added.origins)}).")


@site.command("list")
def _list_sites() -> None:
    """List the websites, one per line: id, origins, and whether the website is deleted."""
    for website in console.sites():
        click.echo(f"{website.id}\t{' '.join(website.origins)}")
    for website in site_deletion.deleted_sites():
        click.echo(f"{website.id}\t{' '.join(website.origins)}\t{_deletion_state(website)}")


def _deletion_state(website: records.Site) -> str:
    if website.erasing is not None:
        return "being erased"
    return f"deleted, can be undeleted until {site_deletion.ends(website):%Y-%m-%d %H:%M} UTC"


@site.command("show", console.SITE)
def _show_site(site_id: str) -> None:
    """Show a website's name and origins, and the other origins that asked for its comments.

    A page of an origin that is not listed shows comments, but nobody can post there. The other
    origins are the latest ones of the last seven days. Anybody can send any origin, so add only
    your own (`site set SITE --add-origin`).
    """
    website, now = console.site(site_id), console.now()
    click.echo(f"{website.id}\t{website.name}")
    for origin in website.origins:
        click.echo(f"allowed\t{origin}")
    for visit in site_setup.get(website.id).wrong_of(website, now=now):
        click.echo(f"not allowed\t{visit.origin}\t{visit.seen:%Y-%m-%d %H:%M} UTC")


@site.command("check", console.SITE)
@click.argument("url", metavar="URL")
def _check_page(site_id: str, url: str) -> None:
    """Request a page of a website, and say why it does not show comments.

    Exit with 1 if there is a fault. URL may be the path of a page of the website's first origin.
    """
    website, service = console.site(site_id), console.settings().public_url
    if not service:
        raise click.ClickException("Set PUBLIC_URL to the address of this service.")
    findings = page_check.findings(url, website, service)
    for finding in findings:
        key = f"admin.fault-{finding.fault}"
        click.echo(catalogue.ENGLISH.text(key, value=finding.value, service=service))
    if findings:
        raise click.exceptions.Exit(1)
    click.echo(catalogue.ENGLISH.text("admin.start-sound"))


_yes = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


@site.command("rename", console.SITE)
@click.argument("new", metavar="NEW-ID", callback=_checked_id)
def _rename_site(site_id: str, new: str) -> None:
    """Give a website another id for its snippets. The earlier ids remain valid.

    A website can have five ids besides its first one. Commands accept all of them.
    """
    website, now = console.site(site_id), console.now()
    site_aliases.rename(website.id, new, moderation_commands.ACTOR, now=now)
    click.echo(f"{website.id} is now {new}. Snippets with its earlier ids still work.")


@site.command("copy", console.SITE)
@click.argument("new", metavar="NEW-ID", callback=_checked_id)
@click.option(
    "--origin", "origins", multiple=True, required=True, callback=_checked_origins,
    help="Origin of the copy's pages.",
)  # fmt: skip
@click.option("--comments", "with_comments", is_flag=True, help="Copy the comments too.")
def _copy_site(site_id: str, new: str, origins: tuple[str, ...], *, with_comments: bool) -> None:
    """Make a staging copy of a website, with its settings and rules.

    The copy has no accounts, keys, webhooks or classifiers of the website, and sends no mail and no
    webhooks. With --comments, it gets the website's comments as they are now. If this command is
    interrupted, a server copies the rest.
    """
    website, actor = console.site(site_id), moderation_commands.ACTOR
    made = site_copy.copy(
        website.id, new, origins, actor, now=console.now(), with_comments=with_comments
    )
    click.echo(f"Added {made.id}, a staging copy of {website.id} ({', '.join(made.origins)}).")
    if with_comments:
        _copy_comments(made.id)


def _copy_comments(site_id: str) -> None:
    while upload_steps.do_next_step(site_id, console.settings().secret):
        pass
    upload = upload_store.get(site_id)
    if upload is None or upload.state is upload_store.UploadState.REFUSED:
        reason = upload.problem if upload else ""
        raise click.ClickException(f"The comments were not copied. {reason}".rstrip())
    if upload.state is upload_store.UploadState.DONE:
        click.echo(f"Copied {quantity(upload.comments, 'comment')}.")
    else:
        click.echo(f"A server is copying the comments. The imports of {site_id} show the progress.")


@site.command("delete", console.SITE, _yes)
def _delete_site(site_id: str, *, yes: bool) -> None:
    """Delete a website with all its comments. For 30 days, `site undelete` takes it back.

    Its pages show no comments any more, nobody can post, and no mail or webhook is sent. A server
    erases all its data after the 30 days, or when `site erase` asks for it.
    """
    website = console.site(site_id)
    _confirm(f"Delete {website.id} with all its comments?", website.id, yes=yes)
    now = console.now()
    deleted = site_deletion.delete(website.id, moderation_commands.ACTOR, now=now)
    click.echo(f"{deleted.id} is {_deletion_state(deleted)}. {console.applies()}")


@site.command("undelete", console.SITE)
def _undelete_site(site_id: str) -> None:
    """Take a deleted website back, as it was."""
    site_deletion.restore(site_id, moderation_commands.ACTOR, now=console.now())
    click.echo(f"{site_id} is back. {console.applies()}")


@site.command("erase", console.SITE, _yes)
def _erase_site(site_id: str, *, yes: bool) -> None:
    """Erase all data of a deleted website now, instead of after 30 days.

    Backups keep the data until they are deleted. If the command is interrupted, a server continues
    the erasure, and so does the same command.
    """
    now = console.now()
    _confirm(f"Permanently erase all data of {site_id}?", site_id, yes=yes)
    site_erasure.begin(site_id, now=now)
    rows, done = 0, site_erasure.go_on(site_id, now=now)
    while done.is_left:
        rows, done = rows + done.rows, site_erasure.go_on(site_id, now=now)
    minutes = site_erasure.SETTLING.seconds // 60
    free = (
        "Its id is free again."
        if done.is_done
        else f"In {minutes} minutes, when nothing can be left of running work, a server or this "
        "command makes the id free again."
    )
    click.echo(f"Erased {quantity(rows, 'row')} of {site_id}. {free}")


def _confirm(question: str, site_id: str, *, yes: bool) -> None:
    if not yes and click.prompt(f"{question} Type its id") != site_id:
        raise click.ClickException("This is not the id. Nothing was changed.")


@site.command("set")
@click.argument("site_id", metavar="ID")
@click.option("--title", help="Name that people see in mails and in the console; '' for the id.")
@click.option("--origin", "origins", multiple=True, help="Origins of its pages; replaces all.")
@click.option("--add-origin", "added_origins", multiple=True, help="Further origins of its pages.")
@click.option(
    "--query-key",
    "query_keys",
    multiple=True,
    help="Query parameters that identify a page; replaces all; '' for none.",
)
@click.option(
    "--keep-trailing-slash/--drop-trailing-slash",
    default=None,
    help="Whether addresses that differ only by a trailing slash are different pages.",
)
@click.option(
    "--ignore-www/--keep-www",
    default=None,
    help="Whether addresses with and without www. are the same page.",
)
@click.option(
    "--ignore-amp/--keep-amp",
    default=None,
    help="Whether addresses with and without /amp at the end are the same page.",
)
@click.option("--cdn-seconds", type=int, help="CDN cache time in seconds; 0 for none.")
@click.option(
    "--freshness",
    type=int,
    help="Seconds that pages may be served without checking for changes; 0 for none.",
)
@click.option(
    "--category",
    "filed",
    multiple=True,
    help="Categories that pages may use; replaces all; '' for none.",
)
@click.option(
    "--moderator",
    "moderators",
    multiple=True,
    help="Mail addresses notified about held comments; replaces all; '' for none.",
)
@click.option("--votes/--no-votes", default=None, help="Whether readers may vote.")
@click.option("--website/--no-website", default=None, help="Whether authors may give a website.")
@click.option(
    "--guests/--no-guests", default=None, help="Whether people may post without an account."
)
@click.option("--order", type=click.Choice(site_options.ORDERS), help="Default order of a thread.")
@click.option(
    "--image-origin",
    "images",
    multiple=True,
    help="Origins from which images are shown inline; replaces all; '' for none.",
)
@click.option("--live", type=int, help="Seconds between checks for new comments; 0 for none.")
@click.option("--theme", type=click.Choice(site_options.THEMES), help="Colors of the comments.")
@click.option("--language", help="Language of the interface; '' for the page's.")
@click.option(
    "--moderation/--no-moderation",
    default=None,
    help="Whether moderators may moderate on the site's pages.",
)
@click.option(
    "--forms/--no-forms", default=None, help="Whether people may post without JavaScript."
)
@click.option(
    "--inbox/--no-inbox", default=None, help="Whether authors have an inbox of unread replies."
)
@click.option(
    "--claims/--no-claims",
    default=None,
    help="Whether readers who prove a mail address own the comments imported under it.",
)
def _set_site(site_id: str, **options: Any) -> None:
    """Change the given settings of a website.

    If a change gives pages other ids, their threads move with them (`thread moves`).
    """
    given = {name: value for name, value in options.items() if value not in {None, ()}}
    if not given:
        raise click.ClickException(f"Nothing to change for {site_id}. See --help for the options.")
    for name in _EMPTIED.intersection(given):
        given[name] = tuple(filter(None, given[name]))
    # The given origins replace all earlier ones. Show the new value, in case the operator did not
    # intend to replace them all.
    is_named = "origins" in given or "added_origins" in given
    of_site = {name: given.pop(name) for name in _OF_SITE if name in given}
    actor = moderation_commands.ACTOR
    changed = page_rules.change(site_id, actor, **of_site, options=given or None)
    if given.get("moderation") is False:
        moderation_sessions.end_all(site_id)
    named = f"{changed.id} ({', '.join(changed.origins)})" if is_named else changed.id
    click.echo(f"Changed {named}. {console.applies()}")


@site.command("move-category", console.SITE)
@click.argument("old")
@click.argument("new")
@click.option("--reason", default="", help="Reason, for the audit log.")
def _move_category(site_id: str, old: str, new: str, reason: str) -> None:
    """Give a category and everything below it another name or another place.

    The category OLD becomes NEW in the website's list and in every thread, such as football and
    sport/football. If NEW exists, the two become one. The service can keep running. If the command
    is interrupted, run it again.
    """
    site_settings.COPIES.get().drop(site_id)
    moved = category_moves.move(
        console.site(site_id), old, new, moderation_commands.ACTOR, now=console.now(),
        reason=reason,
    )  # fmt: skip
    click.echo(
        f"Moved {quantity(moved.threads, 'thread')} and {quantity(moved.comments, 'comment')}."
    )


@site.command("rescheme", console.SITE)
@click.option("--levels", type=int, required=True, help="Number of levels of nested replies.")
@click.option("--width", type=int, help="Digits in a segment; by default, as before.")
@click.option("--digits", help="Digits of the sort hashes, ascending; by default, as before.")
def _rescheme(site_id: str, levels: int, width: int | None, digits: str | None) -> None:
    """Change the number of levels of a website's threads, or the form of its sort hashes.

    With more levels, replies move below the comments that they answer; with fewer levels, they
    become siblings. Threads change one at a time, while people read and write. If the command is
    interrupted, a running server continues the work. Running the same command again continues it
    too. Comments keep their ids; slugs may change, and page cursors of a changed thread expire.
    """
    # Read the site from the store, because another process may have finished a job since this
    # process made its copy.
    site_settings.COPIES.get().drop(site_id)
    scheme = site_settings.checked_scheme(
        console.site(site_id).scheme, levels=levels, width=width, digits=digits
    )
    rescheming.begin(site_id, scheme, moderation_commands.ACTOR, now=console.now())
    done = rescheming.run_to_end(site_id)
    if done is None:
        return
    click.echo(
        f"{site_id} has {quantity(scheme.levels, 'level')}, width {scheme.width} and "
        f"digits {scheme.digits}. Comments moved in {done.moved} of "
        f"{quantity(done.threads + done.left, 'thread')}; "
        f"{quantity(done.renamed, 'comment')} got a new slug."
    )
    for refusal in done.kept:
        click.echo(f"{refusal.thread} keeps its scheme: {error_texts.of_code(refusal.code)}")
    if done.left:
        raise click.exceptions.Exit(1)
