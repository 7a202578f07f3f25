"""Environments on this machine: the packages a project declares, their versions for a site, and their wheels."""
