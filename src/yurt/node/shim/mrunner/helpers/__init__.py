"""mrunner.helpers: one module for spec files, one for scripts."""
