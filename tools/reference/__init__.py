"""Pages of docs/reference and files of schema/, generated from the code."""
