"""The command `yurt` as it starts, also `python -m yurt`: the first question goes out before the rest is loaded."""

import sys

from yurt import ahead


def main() -> None:
    ahead.begin(sys.argv[1:])
    from yurt.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
