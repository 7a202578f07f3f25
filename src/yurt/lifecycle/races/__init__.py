"""Races: one run on several contexts, which starts wherever it starts first."""
