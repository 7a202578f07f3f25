"""Entry point of `yurt` and `python -m yurt`: asks the site before it loads the rest."""

import gc
import sys

from yurt import private
from yurt.transport import queue_prefetch


def main() -> None:
    gc.disable()  # saves a twentieth of the time of short verbs; long ones call yurt.cli.app.enable_gc
    private.ignore_relative_path()
    try:
        if None not in (sys.stdin, sys.stdout, sys.stderr):  # otherwise files opened here would take their numbers
            queue_prefetch.begin(sys.argv[1:])
            if "run" in sys.argv[1:4]:
                from yurt.transport import session_ahead

                session_ahead.begin(sys.argv[1:])
        from yurt.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
