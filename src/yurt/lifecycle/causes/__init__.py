"""Why a run is pending or has failed: causes in words, and what to do about them."""
