"""mrunner.helpers: one for spec files, one for scripts."""
