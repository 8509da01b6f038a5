"""The admin console: the pages where owners and moderators manage a site.

The view of every page of a site calls `site_visit.enter` first. `pages` contains one module per
page. `sign_in` contains the checks that guard every page, and `rendering.labels` contains the
texts.
"""
