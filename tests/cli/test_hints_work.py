"""What a hint says to type works where it is printed: the command of the hint is called with its words."""

from __future__ import annotations

import shlex
import sys

import pytest

from tests import hints
from tests.user import User
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

SITUATIONS = [
    "run",
    "ps --context nope",
    "show zzzzz",
    "show done --filter n=1",
    "show done.3",
    "show grid --usage",
    "show grid --csv --json",
    "show grid.7",
    "show grid --filter n=5",
    "fetch done --only nope*",
    "metrics done --csv --json",
    "metrics done --follow --csv",
    "retry",
    "retry busy",
    "retry --dry-run --yes",
    "retry done --context big",
    "prune --dry-run --yes",
    "cluster --all local",
    "where done --cpus 1",
    "hold busy",
    "hold done",
    "shell done",
    "race release done",
    "context show nope",
    "context add big --slurm-url alice@other.invalid --no-probe",
    "context probe local --deep",
    "context remove local",
    "secret remove NOPE",
    "storage show nope",
    "data ls nope:x",
    "trust --forget x",
    "cluster local --allow n1",
]
"""Calls that fail and whose hint has a command that only looks, or only repeats what the user asked for."""


WRITES = "import os, yurt; yurt.log(loss=1); open(os.environ['YURT_OUTPUTS'] + '/x', 'w').write('x')"


@pytest.fixture
def user(user: User) -> User:
    """A user with a context that does not respond, a completed run, a sweep, and a run that is running."""
    added = ("context", "add", "big", "--slurm-url", "alice@big.invalid", "--storage-dir", "/x", "--no-probe")
    assert user.quick(*added).code == 0
    assert user.quick("context", "use", "local").code == 0
    assert user.quick("run", "--wait", "--name", "done", sys.executable, "-c", WRITES).code == 0
    assert user.quick("run", "--wait", "--name", "grid", "--grid", "n=1..2", "true").code == 0
    assert user.quick("run", "--name", "busy", "sh", "-c", PATIENT).code == 0
    eventually(lambda: user.quick("show", "busy", "--json").json["data"]["status"]["state"] == "running")
    return user


def test_each_command_of_a_hint_works(user: User) -> None:
    called = 0
    for situation in SITUATIONS:
        failed = user.quick(*situation.split())
        assert failed.code != 0, failed
        hint = failed.json["error"]["hint"] if failed.out else failed.err.partition("  hint: ")[2]
        for typed in filter(hints.CALL.match, hints.TYPED.findall(hint)):
            words = shlex.split(typed)[1:]
            if "…" in words or any(word.isupper() for word in words) or words[0] in ("wait", "cancel", "login"):
                continue  # not complete, or it takes time, or ends what the next situations need
            done = user.quick(*words, EDITOR="true", VISUAL="true")
            assert done.code in (0, 4), f"after `yurt {situation}`: {done}"  # 4: big does not respond
            called += 1
    assert called > 15
