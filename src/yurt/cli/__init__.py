"""The frame of the command line: parser, tables, progress, errors. `root.py` lists the commands and where they are."""
