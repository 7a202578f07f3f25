"""Checks, before anything is submitted, that a site can unpickle the functions of a script or notebook.

cloudpickle sends such functions as bytecode, which only the same version of Python can run.
"""

from __future__ import annotations

from collections.abc import Sequence

from yurt.api.batch import Posted
from yurt.api.errors import CallError
from yurt.api.pickles import HERE, by_value
from yurt.model.facts import Facts
from yurt.model.run import Plan


def check(name: str, plan: Plan, posted: Sequence[Posted], facts: Facts | None) -> None:
    """Raise CallError if the Python of the site, or of the environment that yurt builds, cannot run these calls.

    Does nothing if it is not known which Python the calls get: with modules, a venv, conda or a container.
    """
    sent = next((each for each in posted if by_value(each.function, each.arguments)), None)
    if sent is None:
        return
    env, setup = plan.run.env, plan.setup
    if env is not None:
        if series(env.python) != HERE:
            raise CallError(
                f"{sent.title}() is part of a script or notebook of Python {HERE}, and the environment of {env.title} "
                f"on {name} has Python {env.python}",
                code="call-python",
                hint=f'let yurt build it with the same version: `env_python="{HERE}"`; or run this program with Python '
                f"{series(env.python)}, or move the function into a module of the project",
            )
        return
    own = setup.modules or setup.after_modules or setup.venv or setup.conda or setup.container or setup.pyxis
    known = list(dict.fromkeys(series(each) for each in facts.pythons)) if facts is not None else []
    if own or not known or HERE in known:
        return
    raise CallError(
        f"{sent.title}() is part of a script or notebook of Python {HERE}, and {name} has only Python "
        f"{' and '.join(known)}",
        code="call-python",
        hint=f'let yurt build an environment there: `env="requirements.txt", env_python="{HERE}"`; or run this program '
        f"with Python {' or '.join(known)}, name another Python with `python=`, or move the function into a module of "
        "the project",
    )


def series(version: str) -> str:
    """Return the first two numbers of a version: 3.11 of 3.11.2."""
    return ".".join(version.split(".")[:2])
