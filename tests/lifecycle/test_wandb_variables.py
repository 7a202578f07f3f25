"""Variables of W&B: a folder in the outputs of the run, and offline where compute nodes have no internet."""

from __future__ import annotations

import time

import msgspec
import pytest

from tests.backends.test_script import BIG, FACTS
from tests.user import User
from yurt.backends.job import script
from yurt.config import facts as kept
from yurt.lifecycle.plan.plan import plan
from yurt.lifecycle.plan.request import Request
from yurt.model.facts import NodeFacts

MODE = "[ -n \"${WANDB_MODE+x}\" ] || export WANDB_MODE='offline'"


def data(user: User, internet: bool | None, **flags: object) -> str:
    node = None if internet is None else NodeFacts(node="n1", probed_at=1, internet=internet, ssh=True)
    kept.save(BIG, msgspec.structs.replace(FACTS, probed_at=time.time(), node=node))
    return script.data(plan(BIG, Request(words=["true"], flags=flags)).plan).decode()


@pytest.fixture(autouse=True)
def homes(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("internet", "offline"), [(False, True), (True, False), (None, False)])
def test_offline_only_if_nodes_have_no_internet(user: User, internet: bool | None, offline: bool) -> None:
    assert (MODE in data(user, internet).splitlines()) == offline


def test_the_user_decides(user: User) -> None:
    text = data(user, False, variables={"WANDB_MODE": "disabled", "WANDB_DIR": "/mine"})
    lines = [line for line in text.splitlines() if "WANDB" in line]
    assert lines == ["export WANDB_MODE='disabled'", "export WANDB_DIR='/mine'"]


def test_each_task_has_a_folder_of_its_own(user: User) -> None:
    kept.save(BIG, msgspec.structs.replace(FACTS, probed_at=time.time()))
    made = plan(BIG, Request(words=["true"], sets=[{"lr": 1}, {"lr": 2}])).plan
    (line,) = [line for line in script.data(made).decode().splitlines() if "WANDB" in line]
    assert line.endswith("/tasks/'\"$YURT_TASK_INDEX\"'/outputs'")
