"""Environments: the packages that a project declares, their versions for a site, their wheels, and the builds."""
