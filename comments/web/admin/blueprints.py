"""The admin pages of a site, for owners and moderators, under `/admin/sites/{site}`.

Each module in `pages` and `transfer` contains the blueprint of one page or of a group of related
pages. The server renders the pages. `console.js` in `widget/pages` adds keyboard shortcuts and
shows results without reloading the page; every action is also available as a form.

`site_visit.Pages` checks the account's role before every view. Ids in a form or a query are looked
up only in the view's site; an id that belongs to a different site gets 404. Only a POST that
`signed_in.protect` accepts can change data. Pages show an author's name, website, id and counts,
but never an e-mail address or a network. A link leads to a page of this service, to one of the
site's own origins (`thread_info.address`), or to the author's website, which is marked with `rel`.
The target of a redirect after a form never comes from the request. The number of reads per page
does not grow with the site (`review_queue`, `thread_list`).
"""

import importlib
import pkgutil

import flask

from comments.web.admin import pages, transfer

BLUEPRINTS: tuple[flask.Blueprint, ...] = tuple(
    importlib.import_module(f"{package.__name__}.{module.name}").blueprint
    for package in (pages, transfer)
    for module in pkgutil.iter_modules(package.__path__)
)
