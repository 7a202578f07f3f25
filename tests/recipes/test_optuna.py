"""Pruned trials of Optuna are told as pruned, and their tasks do not look failed."""

from __future__ import annotations

import sys

import cloudpickle
import optuna
import pytest
from optuna.trial import TrialState

import yurt
from tests.api.conftest import CONTEXTS, Here

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as if it were a script or a notebook

SECONDS = 120.0


class DivergedError(optuna.TrialPruned):
    """A trial that stops early for a reason of its own."""

    def __init__(self, step: int, loss: float) -> None:
        super().__init__(f"{loss} at step {step}")


def loss(how: str) -> float:
    if how == "pruned":
        raise optuna.TrialPruned("worse than the median")
    if how == "diverged":
        raise DivergedError(3, 1e9)
    if how == "failed":
        raise ValueError("a mistake")
    return 0.5


def test_a_pruned_trial_is_no_failure(here: Here) -> None:
    study = optuna.create_study()
    with yurt.executor("local", snapshot=False) as executor, executor.together():
        asked = {executor.submit(loss, how): study.ask() for how in ("pruned", "diverged", "failed", "fine")}
    for call, trial in asked.items():
        try:
            study.tell(trial, call.result(SECONDS))
        except optuna.TrialPruned:
            study.tell(trial, state=TrialState.PRUNED)
        except ValueError:
            study.tell(trial, state=TrialState.FAIL)
    assert [trial.state.name for trial in study.trials] == ["PRUNED", "PRUNED", "FAIL", "COMPLETE"]
    tasks = yurt.runs(sweep="@last-sweep")
    assert [task.state for task in tasks] == ["completed", "completed", "failed", "completed"]
    assert [task.exit_code for task in tasks] == [0, 0, 1, 0] and "worse than the median" in tasks[0].stderr
    with pytest.raises(DivergedError, match=r"1000000000\.0 at step 3"):
        tasks[1].result()


LIKE_OPTUNA = """\
def pruned():
    class TrialPruned(Exception):
        __module__ = "optuna.exceptions"
    raise TrialPruned("by a cluster without optuna here")
"""


@pytest.mark.lab
@pytest.mark.parametrize("context", CONTEXTS[1:])
def test_a_pruned_trial_on_a_cluster(here: Here, context: str) -> None:
    """The clusters of the lab have no optuna, so the class is defined by the task."""
    with yurt.executor(context, snapshot=False, time="5m") as executor:
        call = executor.submit(exec, LIKE_OPTUNA + "pruned()", {})
        assert "by a cluster" in str(call.exception(SECONDS))
    assert call.run is not None and (call.run.state, call.run.exit_code) == ("completed", 0)
