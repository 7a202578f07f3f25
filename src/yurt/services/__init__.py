"""Services in jobs: programs that listen on a node, reached from this machine."""
