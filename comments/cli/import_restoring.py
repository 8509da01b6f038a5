"""Apply the settings, counters and audit log in an export of Flatthread, for `import`."""

import dataclasses
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from comments.domain import records
from comments.domain.ids import imported_ids
from comments.threads import thread_info
from comments.transfer.importing import running_import
from comments.transfer.own_format import site_restore
from comments.tree.counters.declared import declarations


@dataclasses.dataclass(frozen=True, slots=True)
class Restore:
    """What to apply to a site besides comments; `parts` is None for files of other formats."""

    site: str
    path: Path
    parts: "site_restore.SiteParts | None"
    with_settings: bool

    def apply(
        self, journal: "running_import.RunningImport", id_of: Callable[[str], str]
    ) -> Iterator[str]:
        """Apply the parts, and yield what was applied. `id_of` returns a comment's stored id.

        Without `--settings`, counters are declared only if the site has none.
        """
        if self.parts is None:
            return
        now = datetime.now(UTC)
        yield from self._apply_settings(journal, self.parts, now)
        yield from self._declare_counters(journal, self.parts, now)
        yield from self._add_audit_log(journal, id_of, now)

    def _apply_settings(
        self,
        journal: "running_import.RunningImport",
        parts: "site_restore.SiteParts",
        now: datetime,
    ) -> Iterator[str]:
        if parts.settings is None:
            return
        if not self.with_settings:
            yield "The settings in the file were not applied. Add --settings to apply them."
            return
        site_restore.apply_settings(journal, parts, now=now)
        yield "Replaced the site's settings by those in the file."

    def _declare_counters(
        self,
        journal: "running_import.RunningImport",
        parts: "site_restore.SiteParts",
        now: datetime,
    ) -> Iterator[str]:
        if not parts.counters:
            return
        if declarations.of_site(self.site).counters and not self.with_settings:
            yield "The counters in the file were not declared. Add --settings to declare them."
            return
        added, present = site_restore.declare_counters(journal, parts, now=now)
        if added:
            yield f"Declared counters: {', '.join(added)}."
        if present:
            yield f"Counters that existed already: {', '.join(present)}."

    def _add_audit_log(
        self, journal: "running_import.RunningImport", id_of: Callable[[str], str], now: datetime
    ) -> Iterator[str]:
        added, present = site_restore.add_audit_log(journal, self.path, id_of, now=now)
        if added or present:
            number = "1 entry" if added == 1 else f"{added} entries"
            yield f"Added {number} to the audit log; {present} existed already."


def of(
    format_name: str, path: Path, site: "records.Site", *, with_settings: bool, is_untrusted: bool
) -> tuple[Restore, "records.Site"]:
    """Read what a file contains besides comments, if it is trusted.

    Return this content, and the site with the scheme that new threads will get.

    Raises:
        click.UsageError: settings are to be applied, but the file has another format, or is not
            trusted.
        errors.BadImport: a value in the file is not valid.
    """
    if format_name != imported_ids.OWN and with_settings:
        raise click.UsageError("Only exports of Flatthread contain settings. Omit --settings.")
    if is_untrusted and with_settings:
        raise click.UsageError("--untrusted takes no settings from the file. Omit --settings.")
    if format_name != imported_ids.OWN or is_untrusted:
        return Restore(site.id, path, None, with_settings), site

    parts = site_restore.read(path)
    scheme = parts.scheme
    if with_settings and scheme is not None and not thread_info.has_threads(site.id):
        site = msgspec.structs.replace(
            site, digits=scheme.digits, width=scheme.width, levels=scheme.levels
        )
    return Restore(site.id, path, parts, with_settings), site
