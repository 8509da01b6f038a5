"""Links and codes that let a person in once: invitations, mailed links, typed codes."""
