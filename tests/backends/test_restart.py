"""restart.sh decides as the table in model/restart_policy.py: for every exit and every kind of run."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from yurt.backends import scripts
from yurt.model import layout
from yurt.model.restart_policy import KILLED, Past, decide
from yurt.model.run import RestartPolicy

STATUSES = (0, 1, 84, 85, 86, 130, 136, 137, 138, 139, 143, 255)
CAUSES = ("", "cancelled", "out_of_memory", "lost", "stopped", "timeout", "node_failed", "after")
ALLOWED = [
    RestartPolicy(),
    RestartPolicy(max_requeues=1),
    RestartPolicy(max_requeues=2),
    RestartPolicy(retries=1),
    RestartPolicy(retries=2, retry_errors=True),
    RestartPolicy(max_requeues=1, retries=1, retry_errors=True),
    RestartPolicy(max_requeues=2, retries=4, retry_errors=True),
]


class History(NamedTuple):
    """The records of the starts so far, empty if one left none; and whether this one saved something."""

    ends: tuple[str, ...] = ()
    saved: bool = False

    @property
    def reasons(self) -> list[str]:
        return [end.split()[1] if end else "lost" for end in self.ends]

    @property
    def past(self) -> Past:
        reasons = self.reasons
        last = self.ends[-1] if self.ends else ""
        return Past(
            limits=reasons.count("limit"),
            failures=reasons.count("lost") + reasons.count("error"),
            idle=not self.saved and " limit " in last and not last.endswith(" saved"),
        )


LIMIT, SAVED, ERROR, STOPPED = "137 limit 1 2 ", "85 limit 1 2 saved", "1 error 1 2 ", "143 stopped 1 2 saved"
HISTORIES = [
    History(),
    History((LIMIT,)),
    History((LIMIT,), saved=True),
    History((SAVED,)),
    History((SAVED, LIMIT)),
    History((LIMIT, STOPPED)),
    History(("",)),
    History((ERROR, LIMIT)),
    History(("", ERROR), saved=True),
    History(("137 lost 1 2 ", "", "")),
    History((ERROR, ERROR, ERROR, "")),
    History(("", "", "", "", "")),
]

DRIVER = """
while read -r status requeues retries errors cause; do
  [ "$errors" = yes ] || errors=
  if [ "$status" = next ]; then
    if failures_left 1; then echo again; else echo final; fi
  elif decide_restart "$status" "$cause"; then
    echo "again $reason"
  else
    echo "final $cause"
  fi
done
"""


@pytest.fixture(params=HISTORIES, ids=lambda each: "-".join((*each.reasons, f"saved={each.saved}")))
def history(request: pytest.FixtureRequest, tmp_path: Path) -> History:
    """A run folder with this history, in the working directory."""
    made: History = request.param
    k = len(made.ends) + 1
    (tmp_path / layout.CHECKPOINTS).mkdir()
    for name, age in ((layout.CHECKPOINTS + "/old", 30), (f"{layout.START}{k}", 20), (layout.CHECKPOINTS + "/new", 10)):
        if made.saved or not name.endswith("new"):
            (tmp_path / name).touch()
            os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    for number, end in enumerate(made.ends, 1):
        if end:
            (tmp_path / f"{layout.END}{number}").write_text(end + "\n")
    return made


def decided(history: History, shell: str, folder: Path, lines: Iterable[tuple[str, str, RestartPolicy]]) -> list[str]:
    """Return the decisions of restart.sh on lines of a status, a cause and a restart policy."""
    text = scripts.text("gate.sh", "job") + scripts.text("restart.sh", "job") + f"k={len(history.ends) + 1}\n" + DRIVER
    (folder / "driver.sh").write_text(text)
    asked = "".join(
        f"{status} {again.max_requeues} {again.retries} {'yes' if again.retry_errors else 'no'} {cause}\n"
        for status, cause, again in lines
    )
    done = subprocess.run(
        [shell, "driver.sh"], cwd=folder, input=asked, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_script_decides_as_the_table_does(history: History, tmp_path: Path, shell: str) -> None:
    cases = list(itertools.product(STATUSES, CAUSES, ALLOWED))
    decisions = decided(history, shell, tmp_path, ((str(status), cause, again) for status, cause, again in cases))
    for (status, cause, again), decision in zip(cases, decisions, strict=True):
        expected = decide(status, cause, again, history.past)
        wanted = f"again {expected.again}" if expected.again else f"final {expected.cause}"
        assert decision == wanted, (status, cause, again)


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_next_start_counts_one_that_was_lost(history: History, tmp_path: Path, shell: str) -> None:
    """A lost start recorded no decision; the next start makes it."""
    if not history.ends or history.ends[-1]:
        return
    before = Past(failures=history.past.failures - 1)
    wanted = ["again" if decide(KILLED, "lost", again, before).again else "final" for again in ALLOWED]
    assert decided(history, shell, tmp_path, (("next", "", again) for again in ALLOWED)) == wanted
