"""The service's own public pages, its examples, and the widget's files."""
