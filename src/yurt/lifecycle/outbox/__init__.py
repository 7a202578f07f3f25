"""The outbox: saved runs that are not yet submitted, and pending cancellations."""
