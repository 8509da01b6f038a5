"""Links and codes that each work once: invitations, mailed links, typed codes."""
