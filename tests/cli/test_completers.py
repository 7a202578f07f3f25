"""Shell completion: the words that yurt offers for a value, as bash gets them."""

from __future__ import annotations

import time

import msgspec
import pytest

from tests.lifecycle.test_run import CONTEXTS, FACTS, NOWHERE
from tests.user import User
from yurt.config import facts as kept
from yurt.model.facts import Partition


def completed(user: User, *words: str) -> list[str]:
    """Return what completes the last word: `plain,WORD`, or `file,` for a file name."""
    environment = {
        "_YURT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("yurt", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = user(**environment)
    assert done.code == 0, done
    return done.out.split()


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["run", "tr"], "file,tr"),
        (["run", "train.py", "da"], "file,da"),
        (["run", "--config", "n"], "file,n"),
        (["run", "--spec", "s"], "file,s"),
        (["run", "--venv", "v"], "dir,v"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_files(user: User, words: list[str], kind: str) -> None:
    assert completed(user, *words) == [kind]


def test_partitions(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed(user, "run", "--context", "big", "--partition", "m") == [], "the context does not exist"
    (user.home / "config").mkdir(exist_ok=True)
    (user.home / "config" / "contexts.yaml").write_text(CONTEXTS)
    assert completed(user, "run", "--context", "big", "--partition", "m") == [], "the site was never probed"
    monkeypatch.setenv("YURT_CONFIG_HOME", str(user.home / "config"))
    kept.save(NOWHERE, msgspec.structs.replace(FACTS, probed_at=time.time()))
    assert completed(user, "run", "--context", "big", "--partition", "m") == ["plain,main"]
    assert completed(user, "--context", "big", "run", "-p", "s") == ["plain,short"]
    assert completed(user, "run", "-p", "s") == [], "local has no partitions"
    hostile = [Partition(name=name) for name in ("m$(id)", "m;id", "m`id`", "m\nid", "m&id", "m1")]
    kept.save(NOWHERE, msgspec.structs.replace(FACTS, probed_at=time.time(), partitions=hostile))
    assert completed(user, "run", "--context", "big", "--partition", "m") == ["plain,m1"]


def test_runs_by_name_and_columns_of_a_sweep(user: User) -> None:
    for name in ("warm-up", "warm_b", "cold"):
        assert user.quick("run", "--wait", "--name", name, "--grid", f"lr-{name}=1,2", "true").code == 0
    assert completed(user, "show", "warm") == ["plain,warm_b", "plain,warm-up"]
    assert completed(user, "logs", "warm_") == ["plain,warm_b"]
    assert completed(user, "show", "warm_b", "--sort", "l") == ["plain,lr-warm_b"]
    assert completed(user, "show", "warm_b", "--over", "l") == ["plain,lr-warm_b"]
    assert completed(user, "show", "--sort", "l") == ["plain,lr-cold"]
    assert completed(user, "show", "warm_b", "--sort", "t") == ["plain,task", "plain,took"]
