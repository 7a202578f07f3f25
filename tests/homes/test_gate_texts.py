"""Runs that wait for a home sync: the sbatch options, the reason that users see, and the script for login hosts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from yurt.backends.slurm import options, states
from yurt.errors import UserError
from yurt.homes import config, gate, install, ledger, scripts
from yurt.homes.config import Homes, PlaceSettings
from yurt.homes.outcomes import NOT_CONFIRMED, Deletion, Outcome, Skipped
from yurt.homes.places import Place
from yurt.model import layout
from yurt.model.run import Plan, Run, Status
from yurt.model.state import WAITS_FOR_SYNC

RUN = Run(
    id="x7q4z",
    context="alpha",
    context_type="slurm",
    project="p",
    source="/p",
    created=100.0,
    command=["train.py"],
    folder="/runs/x7q4z",
    home_sync=True,
)
PLAN = Plan(run=RUN, project_folder="/p", store="/s", words=[b"true"])
HELD = Status(state="held", reason=WAITS_FOR_SYNC, submitted=200.0)
CONFLICT = Outcome(hub="local", spoke="alpha", began=250.0, ended=251.0, code=1, skipped=[Skipped("a", "changed")])


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))


def test_the_job_is_held_with_a_mark_in_its_comment() -> None:
    made = options.arguments(PLAN)
    assert "--hold" in made and "--comment=home_sync yurt:x7q4z" in made
    own = msgspec.structs.replace(PLAN, native_options={"comment": "paper"})
    assert "--comment=home_sync paper" in options.arguments(own)
    plain = msgspec.structs.replace(PLAN, native_options={"hold": None, "comment": "home_sync"})
    assert "--comment=home_sync yurt:x7q4z" in options.arguments(plain)
    assert "--hold" not in options.arguments(plain.later()), "a later start is not held again"
    assert options.waits_for_sync(plain.native_options) and not options.waits_for_sync({"comment": "home_sync"})
    without = options.arguments(msgspec.structs.replace(PLAN, run=RUN.unsynced()))
    assert "--hold" not in without and "--comment=yurt:x7q4z" in without
    assert "home_sync" not in options.next_start(PLAN) and "--hold" not in options.next_start(PLAN)


def test_the_state_and_the_reason() -> None:
    assert states.live("PENDING", states.UNSYNCED) == "held"
    assert states.describe("PENDING", states.UNSYNCED) == WAITS_FOR_SYNC


def test_the_name_of_the_file_with_the_environment() -> None:
    assert f"/{layout.ENV_WAIT}" in scripts.gate()


def explained() -> str:
    return gate.explained(RUN, HELD).reason


def test_why_a_run_still_waits() -> None:
    assert explained() == WAITS_FOR_SYNC
    ledger.add([msgspec.structs.replace(CONFLICT, began=150.0, ended=160.0)])
    assert explained() == WAITS_FOR_SYNC, "that sync ended before the submission"
    ledger.add([msgspec.structs.replace(CONFLICT, spoke="beta")])
    assert explained() == WAITS_FOR_SYNC, "that is another cluster"
    ledger.add([CONFLICT])
    assert explained() == f"{WAITS_FOR_SYNC}; the last sync failed: 1 conflict (see `yurt home conflicts`)"
    deletion = Deletion(path="data/run7", place="alpha", other="local", files=304)
    failed = [Skipped("bad\udcff", "cannot be read on alpha: permission denied"), Skipped("b", "c")]
    kept = Skipped("data/run7", NOT_CONFIRMED)
    ledger.add([msgspec.structs.replace(CONFLICT, skipped=[kept], deletions=[deletion], failed=failed)])
    assert explained() == (
        f"{WAITS_FOR_SYNC}; the last sync failed: large deletion on alpha not copied to local: "
        "304 files in 'data/run7'; "
        r"'bad\xff' was not synced: cannot be read on alpha: permission denied; and 1 more"
    )
    ledger.add([msgspec.structs.replace(CONFLICT, code=3, skipped=[], problem="alpha cannot be reached")])
    assert explained() == f"{WAITS_FOR_SYNC}; the last sync failed: alpha cannot be reached"
    ledger.add([msgspec.structs.replace(CONFLICT, code=0, skipped=[])])
    assert explained() == WAITS_FOR_SYNC
    other = Status(state="held", reason="held; release it with `yurt release`")
    assert gate.explained(RUN, other) == other


HOMES = Homes(places={"alpha": PlaceSettings(), "beta": PlaceSettings(address="alice@beta", root="it's")}, keep="2d")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_script_for_a_login_host_is_valid_sh(shell: str) -> None:
    config.save(HOMES)
    alpha = Place("alpha", HOMES)
    reached = install.addresses(HOMES, alpha)
    assert reached == {"beta": "alice@beta"}
    text = install.text(HOMES, alpha, reached)
    assert "keep=172800\n" in text and "yurt-alpha" in text and "yurt-beta" in text
    assert subprocess.run([shell, "-n"], input=text, text=True, check=False).returncode == 0


def test_a_login_host_that_reaches_no_other_place() -> None:
    homes = Homes(places={"alpha": PlaceSettings(), "beta": PlaceSettings()})
    with pytest.raises(UserError, match="names no place that the login host of alpha reaches") as error:
        install.addresses(homes, Place("alpha", homes))
    assert "reaches beta, set `places: {beta: {address: ADDRESS}}`" in error.value.hint
    with pytest.raises(UserError) as alone:
        install.addresses(Homes(places={"alpha": PlaceSettings()}), Place("alpha", homes))
    assert "add another home" in alone.value.hint


def test_only_the_paths_since_the_last_full_sync_are_kept() -> None:
    """The lists of a home with many conflicts are long."""
    ledger.add([msgspec.structs.replace(CONFLICT, skipped=[Skipped("old", "changed")])])
    ledger.add([CONFLICT])
    ledger.add([msgspec.structs.replace(CONFLICT, paths=["b"], skipped=[Skipped("b", "changed")])])
    known = ledger.read().outcomes["local-alpha"]
    assert [[each.path for each in outcome.skipped] for outcome in known] == [[], ["a"], ["b"]]
    assert [each.path for each in ledger.read().conflicts()] == ["a", "b"]
