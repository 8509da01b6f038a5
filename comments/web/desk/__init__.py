"""The desk: a site's pages for those who look after it, under `/admin/sites/{site}`.

One module for each noun that has a page, made on the server; `static/admin/desk.js` adds keys and
outcomes in place, and nothing that a form does not do. What must stay true:

- `visits.enter` comes first in every view: it says who looks, and of which site. What a form or a
  query names is looked for in that site only; anybody else's is not there (404).
- A change is a POST that `callers.guard` lets through; a GET changes nothing.
- A comment is shown by the HTML that was sanitised when it was stored. Of its author there are
  name, website, an id that says who wrote what, and numbers: no mail address and no network.
- Links lead to pages of ours, to the site's own origins (`threads.address`), or are the author's
  and say so (`rel`). Where a browser goes after a form is never taken from a request.
- Each page is a bounded number of reads, however much the site holds (`docket`).
"""

from comments.web.desk import (
    advisers,
    authors,
    bans,
    cases,
    health,
    imports,
    limits,
    log,
    queue,
    rules,
    settings,
    statistics,
    threads,
)

BLUEPRINTS = (
    queue.blueprint,
    cases.blueprint,
    authors.blueprint,
    bans.blueprint,
    threads.blueprint,
    rules.blueprint,
    settings.blueprint,
    advisers.blueprint,
    limits.blueprint,
    imports.blueprint,
    statistics.blueprint,
    log.blueprint,
    health.blueprint,
)
