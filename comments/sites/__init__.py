"""Manage websites: their settings, their set-up and their pages' checks.

Entry points: `site_settings`, `site_setup`, `page_check`, `turnstile_settings`.
"""
