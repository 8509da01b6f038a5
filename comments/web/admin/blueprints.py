"""The admin pages of a site, for owners and moderators, under `/admin/sites/{site}`.

Each module in `pages` contains one page or a group of related pages. The server renders the pages.
`console.js` in `widget/pages` adds keyboard shortcuts and shows results without reloading the page;
every action is also available as a form.

`site_visit.Pages` checks the account's role before every view. Ids in a form or a query are looked
up only in the view's site; an id that belongs to a different site gets 404.
Only a POST that `signed_in.protect` accepts can change data. Pages show an author's name, website,
id and counts, but never an e-mail address or a network. A link leads to a page of this service, to
one of the site's own origins (`thread_info.address`), or to the author's website, which is marked
with `rel`. The target of a redirect after a form never comes from the request. The number of reads
per page does not grow with the site (`review_queue`, `thread_list`).
"""

from comments.web.admin import deletion_page
from comments.web.admin.pages import (
    audience_page,
    audit_log_page,
    author_pages,
    ban_page,
    bulk_page,
    classifier_page,
    comment_page,
    connection_page,
    counter_page,
    follower_page,
    health_page,
    limit_page,
    mail_page,
    notification_page,
    people_page,
    personal_data_page,
    provider_page,
    queue_page,
    reader_sign_in_page,
    rule_page,
    service_settings_page,
    settings_page,
    start_page,
    statistics_page,
    stored_page,
    team_page,
    thread_list_page,
)
from comments.web.admin.transfer import (
    export_page,
    import_page,
    move_page,
    undo_page,
    upload_calls,
)

BLUEPRINTS = (
    start_page.blueprint,
    queue_page.blueprint,
    bulk_page.blueprint,
    comment_page.blueprint,
    author_pages.blueprint,
    ban_page.blueprint,
    thread_list_page.blueprint,
    move_page.blueprint,
    stored_page.blueprint,
    follower_page.blueprint,
    rule_page.blueprint,
    settings_page.blueprint,
    deletion_page.blueprint,
    classifier_page.blueprint,
    connection_page.blueprint,
    reader_sign_in_page.blueprint,
    notification_page.blueprint,
    limit_page.blueprint,
    import_page.blueprint,
    upload_calls.blueprint,
    undo_page.blueprint,
    export_page.blueprint,
    statistics_page.blueprint,
    counter_page.blueprint,
    audience_page.blueprint,
    audit_log_page.blueprint,
    health_page.blueprint,
    service_settings_page.blueprint,
    people_page.blueprint,
    team_page.blueprint,
    mail_page.blueprint,
    personal_data_page.blueprint,
    provider_page.blueprint,
)
