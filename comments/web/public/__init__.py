"""Public pages besides the API: embedded threads, feeds, the widget's files, links from mail."""
