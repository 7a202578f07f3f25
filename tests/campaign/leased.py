"""A run that may be started again, with a short lease, which no option of yurt's sets: CONTEXT NAME LEASE WORD..."""

from __future__ import annotations

import sys

from yurt.config import contexts
from yurt.model.run import Again
from yurt.verbs import plan as planning
from yurt.verbs import run as running
from yurt.verbs.places import store


def main() -> None:
    name, label, lease, *words = sys.argv[1:]
    context = contexts.named(name)
    request = planning.Request(words=words, name=label, snapshot=False, again=Again(requeues=3), lease=int(lease))
    entry, warnings = running.run(store(), context, planning.plan(context, request))
    print(entry.run.id, entry.status.state, *warnings)


if __name__ == "__main__":
    main()
