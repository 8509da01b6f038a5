"""The pages of the admin console, with one module per page. `blueprints` lists them."""
