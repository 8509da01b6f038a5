"""Mail to a site's staff: about new comments, by day or each, and the links to unsubscribe."""
