"""Storage tiers of contexts: where files live, and what is about to be deleted."""
