"""What pages of several kinds show: texts, languages, labels, and comments as nested lists."""
