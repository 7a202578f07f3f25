"""Which contexts a project may use."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.backends.kinds import kind_of
from yurt.config import contexts, project
from yurt.config import facts as recorded
from yurt.errors import UserError
from yurt.model.context import Context

BEST = "best"
"""The word that lets `yurt run` choose the context; a context of this name has precedence."""


def named(names: Sequence[str]) -> list[Context]:
    """Return the named contexts; without names those of the project, else all. Errors as for `contexts.site`."""
    listed = names or _of_project()
    if listed:
        return [contexts.site(name) for name in listed]
    every = contexts.load(contexts.default_file()).contexts.values()
    return [each for each in every if kind_of(each.type).has_host]


def candidates() -> list[Context]:
    """Return the contexts among which the best is chosen: those of the project, else all that were probed.

    UserError if there is none.
    """
    listed = _of_project()
    if listed:
        return [contexts.site(name) for name in listed]
    every = [each for each in named(()) if kind_of(each.type).probed and recorded.last(each) is not None]
    if not every:
        raise UserError(
            f"--context {BEST}: no cluster was probed yet",
            code="usage",
            hint="probe a cluster with `yurt context probe NAME`, or list contexts in yurt.yaml: `contexts: [alpha]`",
        )
    return every


def means_best(name: str) -> bool:
    """Return whether a name of a context stands for the best one."""
    if name != BEST:
        return False
    found = contexts.load(contexts.default_file())
    return BEST not in found.contexts and BEST not in found.invalid


def _of_project() -> list[str]:
    found = project.find()
    return list(dict.fromkeys(found.contexts)) if found is not None else []
