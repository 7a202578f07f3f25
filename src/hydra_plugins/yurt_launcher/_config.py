"""The keys below `hydra.launcher`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore


@dataclass
class YurtLauncherConf:
    """Those of `yurt.executor`; a key that is null is left out."""

    _target_: str = "hydra_plugins.yurt_launcher.launcher.YurtLauncher"
    context: Any = None
    python: Any = None
    fetch: bool = True
    """Whether what the jobs wrote comes home to hydra.sweep.dir, if that is no absolute path."""

    name: Any = "${hydra.job.name}"
    tags: Any = None
    note: Any = None
    cpus: Any = None
    gpus: Any = None
    mem: Any = None
    time: Any = None
    nodes: Any = None
    ntasks: Any = None
    partition: Any = None
    account: Any = None
    qos: Any = None
    constraint: Any = None
    nodelist: Any = None
    exclude_nodes: Any = None
    sbatch: Any = None
    modules: Any = None
    venv: Any = None
    conda: Any = None
    container: Any = None
    variables: Any = None
    secrets: Any = None
    include: Any = None
    exclude: Any = None
    snapshot: Any = None
    requeue: Any = None
    max_requeues: Any = None
    signal_before: Any = None
    retries: Any = None
    retry_errors: Any = None
    max_parallel: Any = None


ConfigStore.instance().store(group="hydra/launcher", name="yurt", node=YurtLauncherConf, provider="yurt")
