"""The settings of a site and its threads: rules, policy, changes by moderators, trials of rules."""
