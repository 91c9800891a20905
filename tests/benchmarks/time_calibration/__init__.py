"""Published training steps, written small enough to be recorded on a null GPU."""
