"""Runs one job of a multirun on the site. Pickled by value, since this module is not installed there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict


class Job:
    """The function that runs a job. All jobs of a multirun share it; its argument is the configuration of one job."""

    def __init__(self, name: str, hydra_context: HydraContext, task_function: TaskFunction, state: Any) -> None:
        self.__name__ = name
        self.hydra_context, self.task_function, self.state = hydra_context, task_function, state

    def __call__(self, _config: DictConfig, /, **_overrides: Any) -> JobReturn:
        setup_globals()
        Singleton.set_state(self.state)
        relative = not Path(_config.hydra.sweep.dir).is_absolute()
        with open_dict(_config):
            _config.hydra.job.id = os.environ["YURT_RUN_ID"]
            _config.hydra.runtime.cwd = str(Path.cwd())
            if relative:
                _config.hydra.sweep.dir = os.environ["YURT_OUTPUTS"]
        HydraConfig.instance().set_config(_config)
        done = run_job(
            hydra_context=self.hydra_context,
            task_function=self.task_function,
            config=_config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key=None if relative else "hydra.sweep.subdir",
        )
        if done.status is JobStatus.FAILED:
            raise done._return_value  # fails the task; the exception keeps its traceback
        return done
