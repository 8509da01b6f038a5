"""Public pages: embedded threads, feeds, the widget's files, and pages that mail links to."""
