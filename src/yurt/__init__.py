"""yurt: run research projects on Slurm clusters and fetch the results.

For scripts inside a run: `yurt.log`, `yurt.params`, `yurt.checkpointing`; see yurt.node.
For programs that submit runs: `yurt.executor`, `yurt.run`, `yurt.runs`, `yurt.get`; see yurt.api.
"""

TYPE_CHECKING = False  # importing typing would cost more than the rest of this module
if TYPE_CHECKING:
    from yurt.api.errors import CallError
    from yurt.api.executor import executor
    from yurt.api.run import run
    from yurt.api.runs import Run, Runs, get, runs
    from yurt.node.checkpoints import checkpointing
    from yurt.node.metrics import log
    from yurt.node.values import params
else:

    def __getattr__(name):
        module = {
            "checkpointing": "node.checkpoints",
            "log": "node.metrics",
            "params": "node.values",
            "CallError": "api.errors",
            "Run": "api.runs",
            "Runs": "api.runs",
            "executor": "api.executor",
            "get": "api.runs",
            "run": "api.run",
            "runs": "api.runs",
        }.get(name)
        if module is None:
            raise AttributeError(f"module 'yurt' has no attribute '{name}'")
        from importlib import import_module

        globals()[name] = found = getattr(import_module(f"yurt.{module}"), name)
        return found


__all__ = [
    "CallError",
    "Run",
    "Runs",
    "__version__",
    "checkpointing",
    "executor",
    "get",
    "log",
    "params",
    "run",
    "runs",
]
__version__ = "0.1.0"
