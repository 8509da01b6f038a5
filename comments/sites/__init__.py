"""Manage websites: their settings, their setup and the checks of their pages.

Entry points: `site_settings`, `site_setup`, `page_check`, `turnstile_settings`.
"""
