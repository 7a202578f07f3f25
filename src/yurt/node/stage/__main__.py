"""The program of yurt that keeps the staged files of a run on one node."""

import sys

from yurt.node.stage.keeper import keep, read_arguments


def main() -> int:
    """Keep the files of the run that the arguments describe; return 0 if nothing is left on the node."""
    return keep(read_arguments(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
