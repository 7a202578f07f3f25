"""yurt: a researcher's project on any cluster, and its results back home.

For scripts inside a run: `yurt.log`, `yurt.params`, `yurt.checkpointing`; see yurt.node.
"""

TYPE_CHECKING = False  # typing's own would cost more than all the rest
if TYPE_CHECKING:
    from yurt.node.checkpoints import checkpointing
    from yurt.node.metrics import log
    from yurt.node.values import params
else:

    def __getattr__(name):
        module = {"checkpointing": "checkpoints", "log": "metrics", "params": "values"}.get(name)
        if module is None:
            raise AttributeError(f"module 'yurt' has no attribute '{name}'")
        from importlib import import_module

        globals()[name] = found = getattr(import_module(f"yurt.node.{module}"), name)
        return found


__all__ = ["__version__", "checkpointing", "log", "params"]
__version__ = "0.1.0"
