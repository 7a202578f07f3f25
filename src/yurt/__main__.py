"""The command `yurt` as it starts, also `python -m yurt`: the first question goes out before the rest is loaded."""

import gc
import sys

from yurt import queue_prefetch


def main() -> None:
    gc.disable()  # most verbs are over before there is anything to collect: a twentieth of their time; see frame.stay
    queue_prefetch.begin(sys.argv[1:])
    from yurt.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
