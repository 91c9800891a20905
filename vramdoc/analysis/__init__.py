"""Pure functions over reports: what a person asks of the figures."""
