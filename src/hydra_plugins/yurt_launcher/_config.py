"""The keys below `hydra.launcher`: the launcher's own and the options of `yurt.executor`."""

from __future__ import annotations

from dataclasses import make_dataclass
from typing import Any

from hydra.core.config_store import ConfigStore

from yurt.model.settings import TABLE

_OWN: dict[str, tuple[Any, Any]] = {
    "_target_": (str, "hydra_plugins.yurt_launcher.launcher.YurtLauncher"),
    "context": (Any, None),
    "python": (Any, None),
    "fetch": (bool, True),  # whether to download the jobs' files to hydra.sweep.dir, if that is a relative path
    "name": (Any, "${hydra.job.name}"),
}

YurtLauncherConf = make_dataclass(
    "YurtLauncherConf",
    [
        *((key, kind, default) for key, (kind, default) in _OWN.items()),
        *((row.option, Any, None) for row in TABLE if row.option and row.option not in _OWN),
    ],
    namespace={"__module__": __name__, "__doc__": "The options of `yurt.executor`; null means not set."},
)

ConfigStore.instance().store(group="hydra/launcher", name="yurt", node=YurtLauncherConf, provider="yurt")
