"""The command line: parses, calls a verb, renders what it returns."""
