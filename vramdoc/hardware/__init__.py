"""GPUs and links as data."""
