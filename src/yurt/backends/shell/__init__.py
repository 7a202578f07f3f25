"""The common part of backends with sh and a file system."""
