"""The program of yurt in the job of a service."""

import os
import sys

from yurt.node.service.run import run


def main() -> int:
    """Run the service that the environment describes; return the exit code of the job."""
    return run(dict(os.environ))


if __name__ == "__main__":
    sys.exit(main())
