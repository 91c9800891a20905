"""What to change: measures as data, the cost model, and the search over both."""
