"""Dev nodes: runs that keep a workspace on a node's own disk and are reached under one ssh name."""
