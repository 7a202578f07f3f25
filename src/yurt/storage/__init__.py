"""Files on contexts: storage tiers, what is about to be deleted, and copies to and from them."""
