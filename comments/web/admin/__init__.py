"""The admin console: the pages where owners and moderators manage a site.

Every page of a site first calls `site_visit.enter`. `pages` contains one module per page.
`sign_in` contains what guards every page, and `rendering.labels` the texts.
"""
