"""The pages of a site for its owners and moderators, under `/admin/sites/{site}`.

There is one module for each noun that has a page. The server renders the pages;
`static/admin/desk.js` adds keyboard shortcuts and shows outcomes in place, and does nothing that a
form cannot do.

Invariants:

1. Every view calls `site_visit.enter` first, which checks the account's role on the site. Ids in a
   form or a query are looked up in that site only; an id of another site is answered 404.
2. A change is a POST that `signed_in.guard` admits; a GET changes nothing.
3. Comments are shown by the HTML that was sanitized when they were stored. Pages show an author's
   name, website, id and counts: never an e-mail address or a network.
4. Links lead to pages of this service, to the site's own origins (`thread_info.address`), or to the
   author's website, marked by `rel`. A redirect after a form never takes its target from a request.
5. Each page costs a bounded number of reads, however many comments the site has (`review_queue`).
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
