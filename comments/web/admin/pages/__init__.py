"""The pages of the admin console, one module each. `blueprints` lists them."""
