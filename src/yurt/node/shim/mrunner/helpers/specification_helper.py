"""mrunner.helpers.specification_helper: creates experiments from a base configuration and grids.

Keys that end in ___ are zipped; together they are the first axis, so they vary slowest.
"""

import copy
from collections import OrderedDict
from itertools import product
from typing import Any, List, Optional

from mrunner import warn
from mrunner.experiment import Experiment
from munch import Munch

LIMIT = 100000
MEANINGLESS = (
    *("add_random_tag", "exclude_git_files", "with_neptune", "display_neptune_link", "copy_neptune_link"),
    *("_script_name", "with_mpi", "paths_to_dump"),
)


def create_experiments_helper(
    experiment_name: Any = None,
    base_config: Any = None,
    params_grid: Any = None,
    script: Any = None,
    python_path: Any = "",
    tags: Any = None,
    env: Any = None,
    project_name: Any = None,
    exclude: Any = None,
    callbacks: Any = None,
    update_lambda: Any = None,
    **more: Any,
) -> List[Experiment]:
    """Return an experiment for each combination of the grid, which overrides the base configuration."""
    for key, value in more.items():
        if key == "mrunner_ignore":
            warn("mrunner_ignore is ignored: yurt excludes the files in .gitignore and .yurtignore")
        elif key not in MEANINGLESS:
            warn("%s=%r of create_experiments_helper is ignored: yurt does not support it" % (key, value))
    base_config = {} if base_config is None else base_config
    tags = list(tags or [])
    env = dict(env or {})
    exclude = list(exclude or [])
    params_configurations = get_combinations({} if params_grid is None else params_grid)
    for callback in callbacks or []:
        if callable(callback):
            callback(**locals())
        else:
            warn("callback %r is ignored: yurt does not support mrunner plugins" % (callback,))
    experiments = []
    for params_configuration in params_configurations:
        config = copy.deepcopy(base_config)
        if update_lambda is None:
            config.update(params_configuration)
        else:
            update_lambda(config, params_configuration)
        experiments.append(
            Experiment(
                project=project_name,
                name=experiment_name,
                script=script,
                parameters=Munch(config),
                python_path=python_path,
                tags=tags,
                env=env,
                exclude=exclude,
            )
        )
    return experiments


def get_combinations(param_grids: Any, limit: Optional[int] = None) -> List[Any]:
    """Return all combinations of a grid, or of several grids one after another."""
    grids = [param_grids] if hasattr(param_grids, "items") else list(param_grids)
    found: List[Any] = []
    for grid in grids:
        found += _combinations(grid, len(found))
    return found[:limit] if limit else found


def _combinations(grid: Any, already: int) -> List[Any]:
    together = OrderedDict((key[:-3], _values(key, each)) for key, each in grid.items() if key.endswith("___"))
    columns = OrderedDict((key, _values(key, each)) for key, each in grid.items() if not key.endswith("___"))
    for key in together:
        if key in columns:
            raise ValueError("params_grid: %s and %s___ cannot be combined" % (key, key))
    lengths = OrderedDict((key, len(values)) for key, values in together.items())
    for key, length in lengths.items():
        first = next(iter(lengths))
        if length != lengths[first]:
            counts = (first, lengths[first], key, length)
            raise ValueError("params_grid: %s___ has %d values but %s___ has %d; the numbers must be equal" % counts)
    rows = list(zip(*together.values())) if together else [()]
    number = len(rows)
    for values in columns.values():
        number *= len(values)
    if number + already > LIMIT:
        message = "params_grid has {:,} combinations; a sweep can have at most {:,}"
        raise ValueError(message.format(number + already, LIMIT))
    keys = list(together) + list(columns)
    return [OrderedDict(zip(keys, row + rest)) for row in rows for rest in product(*columns.values())]


def _values(key: str, values: Any) -> List[Any]:
    if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__iter__"):
        raise TypeError("params_grid: %s must be a list of values, not %r" % (key, values))
    return list(values)
