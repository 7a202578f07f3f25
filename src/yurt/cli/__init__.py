"""The command line: parses, calls one verb, renders its Result."""
