"""What any backend with sh and a file system has in common."""
