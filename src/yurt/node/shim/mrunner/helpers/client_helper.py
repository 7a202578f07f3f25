"""mrunner.helpers.client_helper: parameters and metrics of a run, for scripts."""

import base64
import os
import pickle
import socket
from typing import Any, Dict, Tuple

from munch import Munch, munchify

from yurt.node.metrics import log
from yurt.node.values import params as params_of_run

experiment_ = None
_steps: Dict[str, int] = {}


def get_configuration(
    print_diagnostics: bool = False,
    with_neptune: Any = False,
    inject_parameters_to_gin: bool = False,
    nesting_prefixes: Tuple[str, ...] = (),
    env_to_properties_regexp: str = "",
    config_file: Any = None,
    inject_parameters_to_FLAGS: bool = False,
) -> Any:
    """Return the parameters of this run, as attributes and as keys; `experiment_id` is the id of the run."""
    given = _unpacked(params_of_run())
    if inject_parameters_to_gin:
        inject_dict_to_gin({key: value for key, value in given.items() if "." in key})
    if inject_parameters_to_FLAGS:
        raise RuntimeError(
            "inject_parameters_to_FLAGS: yurt does not set absl flags; set them from get_configuration()"
        )
    params = munchify(given)
    if print_diagnostics:
        print("PYTHONPATH: %s" % os.environ.get("PYTHONPATH", "not_defined"))
        print("cd %s" % os.getcwd())
        print(socket.gethostname())
        print("Params: %s" % (params,))
    nest_params(params, nesting_prefixes)
    params["experiment_id"] = os.environ.get("YURT_RUN_ID")
    return params


def _unpacked(value: Any) -> Any:
    """Return the value with functions and objects of the spec file unpickled."""
    if isinstance(value, dict) and set(value) == {"pickled", "cloudpickle"}:
        return pickle.loads(base64.b64decode(value["cloudpickle"]))
    if isinstance(value, dict):
        return {key: _unpacked(each) for key, each in value.items()}
    return [_unpacked(each) for each in value] if isinstance(value, list) else value


def inject_dict_to_gin(dict: Any, scope: Any = None) -> None:
    """Bind parameters such as train.lr in gin; a text that starts with @ or % is a reference."""
    import gin

    lines = ["import %s" % name for name in dict.get("imports", ())]
    for key, value in dict.items():
        if key != "imports":
            plain = isinstance(value, str) and value[:1] not in ("@", "%", "{", "(", "[")
            lines.append("%s = %s" % (key, repr(value) if plain else value))
    gin.parse_config(lines)


def nest_params(params: Any, prefixes: Any) -> None:
    """Move parameters with a prefix such as net_ into one parameter, net, without the prefix."""
    for prefix in prefixes:
        inside = Munch()
        for key in list(params):
            if key.startswith(prefix):
                inside[key[len(prefix) :]] = params.pop(key)
        params[prefix[:-1]] = inside


def logger(m: str, v: Any, single_value: bool = False) -> None:
    """Log a metric, or a list of values or of (step, value) pairs. Outside of a run, print it."""
    m = m.strip()
    if not os.environ.get("YURT_RUN_DIR"):
        print("%s:%s" % (m, v))
        return
    for each in v if isinstance(v, list) else [v]:
        step, value = each if isinstance(each, tuple) else (_steps.get(m, 0), each)
        if isinstance(step, int):
            _steps[m] = step + 1
        log(None if single_value else step, **{m if m != "step" else "step_": value})
