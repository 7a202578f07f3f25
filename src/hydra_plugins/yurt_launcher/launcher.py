"""Runs all jobs of a multirun as one sweep, and returns their results in Hydra's form."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, configure_log, filter_overrides, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

# The import registers the launcher's keys with Hydra.
from hydra_plugins.yurt_launcher import _config as keys

log = logging.getLogger(__name__)


class YurtLauncher(Launcher):
    """The launcher. `hydra_plugins.yurt_launcher._config` lists its options."""

    def __init__(self, *, context: str | None = None, fetch: bool = True, **options: Any) -> None:
        self._context, self._fetch = context, fetch
        self._options = {key: _plain(value) for key, value in options.items() if value is not None}

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self._hydra_context, self._task_function, self._config = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs and return when all have finished. The value of a failed job is its error, as in Hydra."""
        import cloudpickle

        import hydra_plugins.yurt_launcher as package
        import yurt
        from hydra_plugins.yurt_launcher._job import Job

        cloudpickle.register_pickle_by_value(package)
        setup_globals()
        hydra = self._config.hydra
        configure_log(hydra.hydra_logging, hydra.verbose)
        folder = Path(str(hydra.sweep.dir))
        folder.mkdir(parents=True, exist_ok=True)
        with yurt.executor(self._context, **self._options) as executor:
            log.info("Launching %d jobs with yurt", len(job_overrides))
            configs = []
            for number, overrides in enumerate(job_overrides, initial_job_idx):
                log.info("\t#%d : %s", number, " ".join(filter_overrides(overrides)))
                configs.append(self._job_config(number, overrides))
            job = Job(hydra.job.name, self._hydra_context, self._task_function, Singleton.get_state())
            with executor.together():
                calls = [
                    executor.submit(job, config, **_shown(overrides))
                    for config, overrides in zip(configs, job_overrides, strict=True)
                ]
            done = [_returned(call.exception(), call, config) for call, config in zip(calls, configs, strict=True)]
        if self._fetch and not folder.is_absolute():
            _fetch(folder, {call.task: _subfolder(config) for call, config in zip(calls, configs, strict=True)})
        configure_log(hydra.hydra_logging, hydra.verbose)
        return done

    def _job_config(self, number: int, overrides: Sequence[str]) -> DictConfig:
        found = self._hydra_context.config_loader.load_sweep_config(self._config, list(overrides))
        with open_dict(found):
            found.hydra.job.id = found.hydra.job.num = number
        return found


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


def _shown(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the overrides as parameters, to display and filter by."""
    parsed = OverridesParser.create().parse_overrides(list(filter_overrides(overrides)))
    return {each.key_or_group: each.value() for each in parsed if not each.is_delete()}


def _returned(error: BaseException | None, call: Any, config: DictConfig) -> JobReturn:
    if error is None:
        done: JobReturn = call.result()
        return done
    task = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    return JobReturn(
        overrides=list(config.hydra.overrides.task),
        cfg=task,
        hydra_cfg=OmegaConf.masked_copy(config, ["hydra"]),
        task_name=config.hydra.job.name,
        status=JobStatus.FAILED,
        _return_value=error,
    )


def _subfolder(config: DictConfig) -> str:
    """Return the job's folder below hydra.sweep.dir."""
    before = HydraConfig.instance().cfg
    HydraConfig.instance().set_config(config)  # the name may refer to any part of the configuration
    try:
        return str(config.hydra.sweep.subdir)
    finally:
        HydraConfig.instance().cfg = before


def _fetch(folder: Path, names: dict[str, str]) -> None:
    """Download the jobs' files in one transfer."""
    from yurt.contexts import folders
    from yurt.lifecycle.fetch import fetch_runs
    from yurt.lifecycle.files.transfer import Wanted

    with folders.store() as store:
        entries = store.several([run for run in names if run])
        errors = fetch_runs(store, entries, Wanted(folder=folder, several=True, names=names)).errors
    for error in errors:
        log.warning("%s", error.text)


__all__ = ["YurtLauncher", "keys"]
