"""The admin console: the pages where owners and moderators manage a site.

`site_visit` decides who may see a page, and decodes its query or form. `pages` contains one module
per page. `sign_in` contains the checks that guard every page, and `rendering.labels` contains the
texts.
"""
