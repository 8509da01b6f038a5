"""Who calls the API: readers' tokens, sites' tokens, moderators' tokens."""
