"""Everything that imports torch. Only ever imported inside a worker process."""
