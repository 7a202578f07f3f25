"""Judges a round of home syncs: no version is gone, none is half written, none is overwritten, and homes are equal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from tests.campaign.home_trees import Editor, Place, Tree, read


class State(msgspec.Struct, frozen=True):
    """What all places contain at one moment."""

    trees: dict[str, Tree]
    backups: dict[str, set[tuple[str, str]]]
    """By place: path and version."""


def look(places: Sequence[Place]) -> State:
    return State({each.name: read(each.root) for each in places}, {each.name: each.backups() for each in places})


def lost(before: State, after: State) -> list[str]:
    """Return the versions that are neither where they were nor in the backups of that place."""
    wrong = []
    for place, tree in before.trees.items():
        for path, each in tree.items():
            if not each.version or _version(after, place, path) == each.version:
                continue
            if (path, each.version) not in after.backups[place]:
                somewhere = _somewhere(after, each.version)
                wrong.append(f"{place}: {each.kind} {path!r} was replaced without a backup there; {somewhere}")
        for path, version in before.backups[place] - after.backups[place]:
            wrong.append(f"{place}: the backup of {path!r} is gone ({version})")
    return wrong


def _version(state: State, place: str, path: str) -> str:
    found = state.trees[place].get(path)
    return found.version if found else ""


def _somewhere(state: State, version: str) -> str:
    homes = [
        f"{name}:{path}" for name, tree in state.trees.items() for path, each in tree.items() if each.version == version
    ]
    backups = [
        f"backup of {name}:{path}" for name, all_ in state.backups.items() for path, each in all_ if each == version
    ]
    return f"it is at {', '.join(homes + backups)}" if homes + backups else f"VERSION GONE ({version})"


def overwritten(before: State, after: State, fresh: Collection[tuple[str, str]]) -> list[str]:
    """Return the versions of this round that are not in place any more: a sync copies them, or they are in conflict."""
    return [
        f"{place}: the new version of {path!r} was overwritten"
        for place, path in sorted(fresh)
        if _version(before, place, path) != _version(after, place, path)
    ]


def unknown(state: State, editor: Editor) -> list[str]:
    """Return the files that are no version that the user made."""
    found = [(f"{place}:{path!r}", each.version) for place, tree in state.trees.items() for path, each in tree.items()]
    found += [
        (f"backup of {place}:{path!r}", version) for place, all_ in state.backups.items() for path, version in all_
    ]
    return [
        f"{name} is not a version of the user" for name, version in found if version and version not in editor.known
    ]


def unequal(state: State, conflicts: Collection[str]) -> list[str]:
    """Return the paths that are not the same on all places, without those in conflict and below them."""
    trees = list(state.trees.values())
    paths = sorted({path for tree in trees for path in tree})
    different = [path for path in paths if any(tree.get(path) != trees[0].get(path) for tree in trees)]
    return [
        f"{path!r} differs: {', '.join(f'{name} {tree.get(path)}' for name, tree in state.trees.items())}"
        for path in different
        if not any(path == each or path.startswith(f"{each}/") for each in conflicts)
    ]
