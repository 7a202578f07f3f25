"""Hydra multiruns, on this machine and on a cluster without yurt and without the application."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import yurt
from tests.api.conftest import Here
from yurt.api.options import Options

APP = """\
import logging, os
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.utils import get_original_cwd

import widths

log = logging.getLogger(__name__)


class OddError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


@hydra.main(version_base=None, config_path="conf", config_name="config")
def train(config):
    assert Path(get_original_cwd(), "widths.py").exists() and os.getcwd() == get_original_cwd()
    job = HydraConfig.get().job
    (Path(HydraConfig.get().runtime.output_dir) / "model.txt").write_text(f"{job.num} {widths.of(config)}")
    log.info("%s trains with %s", job.id, config.model.lr)
    if config.fails == "odd":
        raise OddError(1, 2)
    if config.fails == "dies":
        os.kill(os.getpid(), 9)
    return config.model.lr


if __name__ == "__main__":
    train()
"""

CONFIG = """\
model: {lr: 1, width: 2}
fails: ''
hydra:
  sweep: {subdir: "${hydra.job.num}-${hydra.job.override_dirname}"}
  launcher: {cpus: 1, time: 5m, tags: [multi], variables: {KIND: far}}
defaults: [override hydra/launcher: yurt, _self_]
"""

NEEDED = ("hydra", "omegaconf", "antlr4", "packaging", "yaml")


@pytest.fixture
def app(here: Here) -> Path:
    """An application in the project, with a copy of Hydra, which the cluster's Python does not have."""
    for name in NEEDED:
        source = Path(str(import_module(name).__file__)).parent
        if not (here.project / "vendor" / name).exists():
            ignored = shutil.ignore_patterns("__pycache__", "*.so", "test_utils", ".gitignore")
            shutil.copytree(source, here.project / "vendor" / name, ignore=ignored)
    (here.project / "conf").mkdir(exist_ok=True)
    (here.project / "conf" / "config.yaml").write_text(CONFIG)
    (here.project / "widths.py").write_text("def of(config):\n    return config.model.width\n")
    (here.project / "app.py").write_text(APP)
    shutil.rmtree(here.project / "multirun", ignore_errors=True)
    return here.project


def multirun(app: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(app / "vendor"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "app.py", "-m", *words],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("context", ["local", pytest.param("alpha", marks=pytest.mark.lab)])
def test_a_multirun_is_a_sweep_and_its_files_are_downloaded(here: Here, app: Path, context: str) -> None:
    before = here.sweeps()
    done = multirun(app, f"hydra.launcher.context={context}", "model.lr=0.5,0.25", "+model.depth=3")
    assert done.returncode == 0, done.stderr
    assert "#1 : model.lr=0.25 +model.depth=3" in done.stdout
    (sweep,) = set(here.sweeps()) - set(before)
    tasks = yurt.runs(sweep=sweep)
    assert [(task.name, task.tags, task.params) for task in tasks] == [
        ("app", ["multi"], {"model.lr": lr, "model.depth": 3}) for lr in (0.5, 0.25)
    ]
    assert tasks[1].result().return_value == 0.25 and tasks[1].result().overrides == ["model.lr=0.25", "+model.depth=3"]
    (folder,) = (app / "multirun").glob("*/*")
    assert (folder / "multirun.yaml").exists()
    (second,) = folder.glob("1-*")
    assert second.name == "1-+model.depth=3,model.lr=0.25" and (second / "model.txt").read_text() == "1 2"
    assert f"{sweep}.1 trains with 0.25" in (second / "app.log").read_text()
    assert (second / ".hydra" / "overrides.yaml").read_text() == "- model.lr=0.25\n- +model.depth=3\n"


def test_failed_jobs_are_reported_as_hydra_does(here: Here, app: Path) -> None:
    done = multirun(app, "hydra.launcher.context=local", "fails=odd,'',dies")
    assert done.returncode == 1 and "Error executing job with overrides: ['fails=odd']" in done.stderr
    assert "OddError: 1 and 2" in done.stderr and "raise OddError(1, 2)" in done.stderr
    assert [task.state for task in yurt.runs(sweep="@last-sweep")] == ["failed", "completed", "failed"]
    assert len(list((app / "multirun").glob("*/*/*/model.txt"))) == 3


def test_a_killed_job_without_fetch(here: Here, app: Path) -> None:
    done = multirun(app, "hydra.launcher.context=local", "hydra.launcher.fetch=false", "fails=dies")
    assert done.returncode == 1 and "killed by signal 9" in done.stderr and "yurt.api.errors.CallError" in done.stderr
    (task,) = yurt.runs(sweep="@last-sweep")
    assert f"\nhint: see its output with `yurt logs {task.id}`\n" in done.stderr
    assert task.state == "failed" and not list((app / "multirun").glob("*/*/*/model.txt"))


def test_the_launcher_has_the_options_of_the_executor() -> None:
    from hydra_plugins.yurt_launcher._config import YurtLauncherConf

    own = {"_target_", "context", "python", "fetch"}
    assert set(YurtLauncherConf.__annotations__) == set(Options.__annotations__) | own


def test_an_unknown_option(here: Here, app: Path) -> None:
    done = multirun(app, "hydra.launcher.context=local", "hydra.launcher.cpu=1")
    assert done.returncode == 1 and "Key 'cpu' not in 'YurtLauncherConf'" in done.stderr


def test_an_invalid_value_is_reported_with_its_hint(here: Here, app: Path) -> None:
    done = multirun(app, "hydra.launcher.context=local", "hydra.launcher.time=soon")
    assert done.returncode == 1 and "--time" in done.stderr and "\nhint: for example: `--time 2h`\n" in done.stderr
    assert not here.sweeps()
