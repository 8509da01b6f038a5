"""The moderation settings of a site: rules and policy, their changes, and trials of rules."""
