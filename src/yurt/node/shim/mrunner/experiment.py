"""mrunner.experiment: the experiments that a spec file creates."""

from typing import Any, Dict

from mrunner import warn

MEANINGLESS = ("random_name", "unique_name", "git_info", "cwd", "send_code", "restore_from_path")


class Experiment:
    """One experiment: its name, command, parameters, tags and variables."""

    def __init__(
        self, project: Any = None, name: Any = None, script: Any = None, parameters: Any = None, **more: Any
    ) -> None:
        self.project = project
        self.name = name
        self.script = script
        self.parameters = {} if parameters is None else parameters
        self.env = dict(more.pop("env", None) or {})
        self.tags = more.pop("tags", None) or []
        self.exclude = more.pop("exclude", None) or []
        self.python_path = more.pop("python_path", None) or ""
        for key, value in more.items():
            setattr(self, key, value)
            if key not in MEANINGLESS and value:
                warn("'%s' of an mrunner experiment is ignored: use yurt's own option or setting" % key)

    def to_dict(self) -> Dict[str, Any]:
        return dict(vars(self))
