"""The program of yurt on a dev node: `hold` is its job, `ask` talks to it, the rest reads backups without a job."""

import json
import os
import sys
from typing import Any, Callable, Dict, Iterator, List

from yurt.node import backup
from yurt.node.dev import control
from yurt.node.dev.hold import hold
from yurt.node.files import NodeError


def main() -> int:
    """Run the word in sys.argv; return the exit code. Answers are lines of JSON, the last one `ok` or `error`."""
    words = sys.argv[1:]
    if words[:1] == ["hold"]:
        return hold(os.environ)
    answers = {"ask": _ask, "list": _list, "restore": _restore, "verify": _verify}
    answer: Any = answers.get(words[0] if words else "")
    if answer is None:
        sys.stderr.write("yurt: unknown word; use hold, ask, list, restore or verify\n")
        return 64
    last: Dict[str, Any] = {}
    try:
        for last in answer(words[1:]):
            print(json.dumps(last), flush=True)
    except (NodeError, backup.BackupError, OSError) as error:
        last = {"error": str(error)}
        print(json.dumps(last), flush=True)
    return 0 if last.get("ok") else 1


def _ask(words: List[str]) -> Iterator[Dict[str, Any]]:
    return control.ask(os.environ.get("YURT_RUN_DIR") or os.getcwd(), words[0])


def _list(words: List[str]) -> Iterator[Dict[str, Any]]:
    yield {"versions": [each._asdict() for each in backup.versions(words[0])], "ok": True}


def _restore(words: List[str]) -> Iterator[Dict[str, Any]]:
    folder, number, target, paths = words[0], int(words[1]), words[2], words[3:]
    if paths:
        yield {"paths": backup.restore_paths(folder, number, paths, target, on_progress=_progress()), "ok": True}
    else:
        backup.restore(folder, number, target, on_progress=_progress())
        yield {"ok": True}


def _verify(words: List[str]) -> Iterator[Dict[str, Any]]:
    numbers = [int(each) for each in words[1:]] or [each.number for each in backup.versions(words[0])]
    for number in numbers:
        backup.verify(words[0], number)
    yield {"versions": numbers, "ok": True}


def _progress() -> Callable[[str, int, int], None]:
    def show(phase: str, done: int, total: int) -> None:
        print(json.dumps({"progress": {"phase": phase, "done": done, "total": total}}), flush=True)

    return show


if __name__ == "__main__":
    sys.exit(main())
