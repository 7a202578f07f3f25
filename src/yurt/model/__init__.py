"""The words of yurt as values: contexts, events. Pure: no processes, files or sockets here."""
