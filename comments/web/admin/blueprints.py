"""The admin console: a site's pages for those who look after it, under `/admin/sites/{site}`.

One module for each noun that has a page, made on the server; `static/admin/desk.js` adds keys and
outcomes in place, and nothing that a form does not do. What must stay true:

- `site_visit.enter` comes first in every view: it says who looks, and of which site. What a form or
  a query names is looked for in that site only; anybody else's is not there (404).
- A change is a POST that `signed_in.guard` lets through; a GET changes nothing.
- A comment is shown by the HTML that was sanitised when it was stored. Of its author there are
  name, website, an id that says who wrote what, and numbers: no mail address and no network.
- Links lead to pages of ours, to the site's own origins (`thread_info.address`), or are the
  author's and say so (`rel`). Where a browser goes after a form is never taken from a request.
- Each page is a bounded number of reads, however much the site holds (`review_queue`).
"""

from comments.web.admin.pages import (
    audit_log_page,
    author_pages,
    ban_page,
    classifier_page,
    comment_page,
    health_page,
    import_page,
    limit_page,
    queue_page,
    rule_page,
    settings_page,
    statistics_page,
    thread_list_page,
)

BLUEPRINTS = (
    queue_page.blueprint,
    comment_page.blueprint,
    author_pages.blueprint,
    ban_page.blueprint,
    thread_list_page.blueprint,
    rule_page.blueprint,
    settings_page.blueprint,
    classifier_page.blueprint,
    limit_page.blueprint,
    import_page.blueprint,
    statistics_page.blueprint,
    audit_log_page.blueprint,
    health_page.blueprint,
)
