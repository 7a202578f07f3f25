"""The dev node: the program that holds a workspace on a compute node, backs it up and answers requests."""
