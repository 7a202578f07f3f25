"""Dev nodes: runs that keep a node and a workspace on its disk, and back the workspace up."""
