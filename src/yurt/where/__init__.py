"""Where a run would start first: which questions a site is asked, and what its answers are worth."""
