"""The agent: a background process that repeats what other verbs do as well."""
