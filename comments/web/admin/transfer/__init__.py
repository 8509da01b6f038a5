"""The pages about a site's data: imports and exports, for owners."""
