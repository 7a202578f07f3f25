"""The keys of a context as users write them: their other names, an example each, the forms a value may have. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from yurt.model.context import Context, ContextResources
from yurt.model.resources import parse_gpus, parse_memory, parse_time

EXAMPLES: dict[str, str] = {
    "name": "big",
    "type": "slurm",
    "slurm_url": "alice@login.big.example",
    "ssh_options": '["-J", "gateway"]',
    "ssh_command": '["gcloud", "compute", "ssh"]',
    "storage_dir": "$HOME/runs",
    "scratch_dir": "yurt",
    "partition": "main",
    "account": "lab42",
    "qos": "normal",
    "user_id": "alice",
    "resources": "{cpu: 4, gpu: 1, mem: 8G}",
    "time": "2h",
    "ntasks": "4",
    "nodelist": "n[1-4]",
    "exclude_nodes": "n7",
    "sbatch_options": "{constraint: a100, exclusive: null}",
    "cmd_type": "sbatch",
    "track": "true",
    "tags": "[baseline, paper]",
    "modules_to_load": "[python/3.11, cuda/12.1]",
    "after_module_load_cmd": "source ~/setup.sh",
    "venv": "~/venvs/torch",
    "conda": "torch",
    "container": "/images/torch.sif",
    "env": "environment.yml",
    "requirements_file": "requirements.txt",
    "variables": '{OMP_NUM_THREADS: "4"}',
    "exclude": "[data, .git]",
    "paths_to_copy": "[../shared]",
    "registry_url": "registry.example/alice",
    "lab": "default",
    "resources.cpu": "4",
    "resources.gpu": "a100:2",
    "resources.mem": "8G",
}
"""A right value for each key, as it would stand in YAML."""

ALIASES: dict[str, str] = {
    "context_name": "name",
    "backend_type": "type",
    "storage": "storage_dir",
    "scratch_subdir": "scratch_dir",
    "neptune": "track",
    "singularity": "container",
    "singularity_container": "container",
    "cpu": "resources.cpu",
    "gpu": "resources.gpu",
    "mem": "resources.mem",
}
"""Other names of keys: those mrunner's documentation and code used. `env` as a mapping is `variables`."""

KEYS: tuple[str, ...] = Context.__struct_fields__
RESOURCES: tuple[str, ...] = ContextResources.__struct_fields__

_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,17}")


def is_name(text: object) -> bool:
    """Whether a context can be called that."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def canonical_key(key: str, value: Any) -> str:
    """The name yurt uses for a key: one of KEYS, resources.cpu and so on, or the word itself if it is no key."""
    return "variables" if key == "env" and isinstance(value, Mapping) else ALIASES.get(key, key)


def tidy(key: str, value: Any) -> Any:
    """A value in the one form yurt uses; ValueError says what the value of that key must be."""
    return _FORMS[key](value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError("must be text")


def _written(value: Any) -> str:
    """Text, also where a TOML file holds a number or a truth value."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, float) else _text(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not _WHOLE.fullmatch(str(value)) or int(value) < 1:
        raise ValueError("must be a whole number above zero")
    return int(value)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.lower() not in _TRUTHS:
        raise ValueError("must be true or false")
    return _TRUTHS[value.lower()]


def _list(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError:
            raise ValueError("must be a list of words with every quote closed") from None
    if not isinstance(value, list | tuple) or not all(isinstance(each, str | int | float) for each in value):
        raise ValueError("must be a list of words")
    return tuple(_written(each) for each in value)


def pairs(value: Any) -> dict[str, Any]:
    """A mapping, also from a list or a string of key=value words; ValueError where it is neither."""
    if isinstance(value, str):
        value = _list(value)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        split = [each.partition("=") for each in value]
        value = {key.removeprefix("--"): text if equals else None for key, equals, text in split}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) and key.removeprefix("--") for key in value):
        raise ValueError("must be a mapping")
    return {key.removeprefix("--"): each for key, each in value.items()}


def _variables(value: Any) -> dict[str, str]:
    found = pairs(value)
    if not all(isinstance(each, str | int | float) for each in found.values()):
        raise ValueError("must be a mapping of names to text")
    return {key: _written(each) for key, each in found.items()}


def _options(value: Any) -> dict[str, str | None]:
    found = pairs(value)
    if not all(each is None or isinstance(each, str | int | float) for each in found.values()):
        raise ValueError("must be a mapping of options to text or null")
    return {key: None if each is None else _written(each) for key, each in found.items()}


def _number_or_text(value: Any) -> int | str:
    text = _text(value).strip()
    return int(text) if _WHOLE.fullmatch(text) else text


def _checked(parse: Callable[[Any], Any], keep: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A form that keeps what the user wrote, once it is known to be understood."""

    def form(value: Any) -> Any:
        parse(value)
        return keep(value)

    return form


def _one_of(*words: str) -> Callable[[Any], str]:
    def form(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"must be {', '.join(words[:-1])} or {words[-1]}")
        return value

    return form


_FORMS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(KEYS, _text),
    **dict.fromkeys(("ssh_options", "ssh_command", "tags", "modules_to_load", "exclude", "paths_to_copy"), _list),
    "type": _one_of("local", "slurm", "kubernetes"),
    "cmd_type": _one_of("sbatch", "srun"),
    "track": _truth,
    "ntasks": _whole,
    "time": _checked(parse_time, _number_or_text),
    "variables": _variables,
    "sbatch_options": _options,
    "resources.cpu": _whole,
    "resources.gpu": _checked(parse_gpus, _number_or_text),
    "resources.mem": _checked(parse_memory, _text),
}
