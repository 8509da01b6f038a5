"""Import comments from another system or from an export: `import [FORMAT] FILE`."""

import html
from collections.abc import Sequence
from urllib.parse import urlencode

import click

from comments.cli import console, import_files, import_progress, import_restoring
from comments.domain import records
from comments.domain.text.shown_values import quantity
from comments.threads import thread_info
from comments.transfer.checking import checked_import, source_pages
from comments.transfer.importing import import_journal, import_writer, running_import
from comments.transfer.proposals import mapping_proposals
from comments.transfer.verification import verification_report
from comments.upkeep import scheduler, wiring


@console.command("import")
@click.argument("source", nargs=-1, required=True, metavar="[FORMAT] FILE")
@click.option("--site", "site_id", required=True, help="The site to import into.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check the file, print the report and propose mappings, but store nothing.",
)
@import_files.mapping_option
@click.option(
    "--settings",
    "with_settings",
    is_flag=True,
    help="Apply the settings in an export of Flatthread to the site.",
)
@click.option(
    "--untrusted",
    "is_untrusted",
    is_flag=True,
    help="Take no ids, single votes and decisions from an export of Flatthread, as for uploads.",
)
@import_files.rare_collections()
def import_(
    source: tuple[str, ...],
    site_id: str,
    *,
    dry_run: bool,
    mapping: tuple[str, ...],
    with_settings: bool,
    is_untrusted: bool,
) -> None:
    """Import the comments in a file that another system, or Flatthread, exported.

    Name the format before the file if the command does not recognize it: artalk, comentario,
    commento, disqus, flatthread, isso, remark42, twikoo, valine, waline, wordpress, or generic
    (JSON lines or CSV).

    The command checks the whole file before it stores anything. If an import is interrupted, run it
    again to finish it. Repeating a finished import adds nothing.
    """
    file_format, file = import_files.format_and_file(source)
    restore, site = import_restoring.of(
        file_format.name,
        file,
        console.site(site_id),
        with_settings=with_settings,
        is_untrusted=is_untrusted,
    )
    import_journal.check_no_undo(site.id)
    reader = file_format.read_untrusted if is_untrusted else file_format.read
    with import_files.open_plan(file_format, file, site, mapping, reader) as plan:
        try:
            import_writer.check(plan)
        finally:
            for line in plan.report.lines():
                click.echo(line)
        if dry_run:
            _end_dry_run(plan, site)
            return
        summary = _write(plan, site, restore)
        verified = import_files.compare(plan)
    click.echo(
        f"Added {quantity(summary.added, 'comment')} in "
        f"{quantity(summary.threads, 'thread')}; {summary.present} existed already."
    )
    for line in verification_report.outcome(verified):
        click.echo(line)
    _say_what_follows(plan.threads, site)
    if verified.unexplained_count:
        raise click.exceptions.Exit(1)


def _write(
    plan: "checked_import.CheckedImport", site: "records.Site", restore: import_restoring.Restore
) -> "import_writer.ImportSummary":
    """Store a checked file, and print what it contained besides comments."""
    applied: list[str] = []
    events: list[str] = []

    def prepare(journal: running_import.RunningImport) -> None:
        applied.extend(restore.apply(journal, plan.id_of))

    with import_progress.showing("Importing", plan.report.comments, "comment") as advance:
        summary = import_writer.write(
            plan,
            scheme=site.scheme,
            now=console.now(),
            progress=advance,
            told=events.extend,
            prepare=None if restore.parts is None else prepare,
        )
    for line in applied:
        click.echo(line)
    # Deliver the events here: without a running server, no other process would update the
    # counters, which the operator will probably check next.
    handlers = wiring.handlers(console.settings())
    scheduler.deliver(events, now=console.now(), handlers=handlers)
    return summary


def _say_what_follows(
    threads: "Sequence[source_pages.PlannedThread]", site: "records.Site"
) -> None:
    """Say how to view the longest thread with a page on the site, or else the longest of all."""
    if not threads:
        return
    pages = {
        thread.name: thread_info.page_address(thread.url, thread.name.id, site)
        for thread in threads
    }
    longest = max(threads, key=lambda each: (bool(pages[each.name]), len(each.nodes)))
    thread, page = longest.name.id, pages[longest.name]
    query = urlencode({"site": site.id, "thread": thread})
    server = console.settings().public_url
    at = f"{server}/?{query}" if server else f"/?{query} on the server"
    click.echo(f"To view a thread of {quantity(len(longest.nodes), 'comment')}, open {at}.")
    attribute = (
        f'data-page="{html.escape(page)}"' if page else f'data-thread="{html.escape(thread)}"'
    )
    click.echo(f'To show it on a page: <div id="flatthread" {attribute}></div>')


def _end_dry_run(plan: "checked_import.CheckedImport", site: "records.Site") -> None:
    """Propose mappings, and say that nothing was stored."""
    proposals = mapping_proposals.propose(plan.threads, site, plan.report.empty_pages)
    for line in mapping_proposals.lines(proposals):
        click.echo(line)
    click.echo("Dry run: nothing was stored.")
