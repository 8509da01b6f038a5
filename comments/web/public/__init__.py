"""What readers see without the API: embedded threads, feeds, the widget's files, links in mail."""
