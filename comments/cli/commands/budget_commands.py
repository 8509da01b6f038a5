"""Show and set a website's daily budget (`sites.budgets`)."""

import click
import msgspec

from comments import errors
from comments.cli import console
from comments.domain import records
from comments.limits import budgets, usage
from comments.sites import site_settings

budget = console.Group("budget")
_NAMES = records.Budget.__struct_fields__


@budget.command("show")
@click.argument("site_id", metavar="[SITE]", required=False)
def _show(site_id: str | None) -> None:
    """Show a website's budget and today's usage; without SITE, show the service's own usage."""
    now = console.now()
    if site_id is None:
        for name, used in msgspec.structs.asdict(usage.total(usage.SERVICE, now=now)).items():
            click.echo(f"{name}\t{used}")
        return
    site = console.site(site_id)
    limits = {name: (most, standing) for name, _, most, standing in budgets.each(site, now=now)}
    for name, used in msgspec.structs.asdict(usage.total(site.id, now=now)).items():
        most, standing = limits.get(name, (0, budgets.BudgetLevel.FREE))
        limit_text = f"of {most}\t{standing.name.lower()}" if most else "unlimited"
        click.echo(f"{name}\t{used}\t{limit_text}")
    click.echo(f"then\t{site.budget.then}")


@budget.command("set", console.SITE)
@click.argument("name", type=click.Choice(_NAMES))
@click.argument("value")
def _set(site_id: str, name: str, value: str) -> None:
    """Set the daily number of reads, writes, mails, posts or previews; 0 means unlimited.

    `then` sets what happens when a budget is spent: `slow` or `read-only`.
    """
    is_number = value.isascii() and value.isdecimal() and len(value) <= 10  # noqa: PLR2004
    if name != "then" and not is_number:
        raise errors.BadInput(name, "out-of-range", minimum=0, maximum=budgets.MOST)
    site_settings.change(site_id, budget={name: value if name == "then" else int(value)})
    click.echo(f"Changed {site_id}. {console.applies()}")
