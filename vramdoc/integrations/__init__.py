"""vramdoc inside other tools: thin adapters."""
