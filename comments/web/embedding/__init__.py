"""Threads for readers without the widget: HTML, a form without JavaScript, feeds."""
