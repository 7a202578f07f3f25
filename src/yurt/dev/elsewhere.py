"""Finds dev nodes that another machine has started: their holders write to the folders of the backups who uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from yurt.config import contexts, precedence
from yurt.contexts import connect
from yurt.contexts.facts import facts_if_probed
from yurt.contexts.fan_out import side_by_side
from yurt.dev import configure, holder
from yurt.dev.words import named
from yurt.errors import UnreachableError, YurtError
from yurt.lifecycle.import_ import import_run
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.store import Entry, Store

Read = Callable[[Context, bool], Sequence[str]]
"""Returns the files `holder` of a context; the second argument is whether it is the only one that is asked."""


def everywhere() -> list[str]:
    """Return the names of all contexts."""
    return sorted(contexts.load(contexts.default_file()).contexts)


def import_one(store: Store, name: str, names: Sequence[str]) -> dict[str, YurtError]:
    """Add the running dev node of a name on these contexts to the index, asking them in parallel.

    Return the errors of those that cannot be queried.
    """

    def read(place: Context, alone: bool) -> Sequence[str]:
        backend = connect.responding_backend(place.name, alone=alone)
        (there,) = backend.workspaces.look([backups_folder(place, name)])
        return [there.holder]

    return _import(store, names, read)


def import_all(store: Store, names: Sequence[str]) -> dict[str, YurtError]:
    """Add the running dev nodes on these contexts to the index. Return the errors of those that cannot be queried."""

    def read(place: Context, alone: bool) -> Sequence[str]:
        base = configure.base_folder(*_wanted(place))
        return connect.responding_backend(place.name, alone=alone).workspaces.holders(base)

    return _import(store, names, read)


def _import(store: Store, names: Sequence[str], read: Read) -> dict[str, YurtError]:
    found: dict[str, Sequence[str]] = {}
    failed: dict[str, YurtError] = {}

    def ask(name: str) -> None:
        try:
            found[name] = read(contexts.site(name), len(names) == 1)
        except YurtError as error:
            failed[name] = error

    if len(names) == 1:
        ask(names[0])
    elif names:
        side_by_side(ask, names)
    for name in names:
        try:
            for content in found.get(name, ()):
                of_other_machine(store, contexts.site(name), content)
        except YurtError as error:
            failed[name] = error
    return failed


def of_other_machine(store: Store, place: Context, content: str) -> Entry | None:
    """Return the unfinished run that uses a workspace now, according to the file `holder` there; import it if needed.

    The file of a dev node that was killed stays.
    """
    live = holder.read_live(content)
    entry = import_run(store, place, live.run) if live is not None and live.run else None
    if entry is None or entry.run.purpose != "dev":
        return None
    if not entry.status.final:
        refresh_contexts(store, [entry.run.context], steps=STEPS)
    entry = store.get(entry.run.id) or entry
    return None if entry.status.final else entry


def may_be_there(name: str, asked: Sequence[str], failed: Mapping[str, YurtError]) -> YurtError:
    """Return the error about a dev node that was not found, where some of the contexts could not be queried."""
    if len(asked) == 1:
        return failed[asked[0]]
    answered = " and ".join(each for each in asked if each not in failed)
    silent = "; ".join(f"cannot query {each}: {why(each, failed[each])}" for each in sorted(failed))
    return UnreachableError(
        f"there is no dev node '{name}'{answered and f' on {answered}'}; {silent}",
        code=next(iter(failed.values())).code,
        hint=f"run the command again later, or start another one with `yurt dev up{named(name)}`",
    )


def why(context: str, error: YurtError) -> str:
    """Return the message of an error of a context, without its name."""
    return error.message.removeprefix(f"{context}: ")


def backups_folder(place: Context, name: str) -> str:
    """Return the folder of the backups of a dev node on a context."""
    wanted, facts = _wanted(place)
    return configure.backups_folder(wanted, facts, name)


def _wanted(place: Context) -> tuple[Context, Facts | None]:
    """Return a context with the settings that apply without options, and the facts about its site."""
    return precedence.as_context(place.name, precedence.resolve(place, {})), facts_if_probed(place)
