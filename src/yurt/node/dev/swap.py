"""Puts a complete new folder in the place of the workspace, so that a kill at any moment loses neither of them."""

import os
from typing import Dict

from yurt.node.dev.place import Place
from yurt.node.files import read_json, remove, write_json

PLAN = "swap"
MADE = "made"
FRESH = "fresh-"
"""What the names of unfinished folders beside the state begin with."""


def fresh(place: Place, name: str) -> str:
    """Return the path of a folder to be made on the disk of the workspace. What an earlier attempt left is removed."""
    path = os.path.join(place.beside, FRESH + name)
    remove(path)
    return path


def put_in_place(place: Place, folder: str, state: str = "", aside: str = "") -> None:
    """Make a complete folder the workspace, with its state; the present workspace moves to `aside`.

    The plan is on the disk first: `finish` completes it after a kill.
    """
    write_json(os.path.join(place.beside, PLAN), {"folder": folder, "state": state, "aside": aside})
    finish(place)


def finish(place: Place) -> None:
    """Complete a swap that was begun, if there is one."""
    path = os.path.join(place.beside, PLAN)
    plan: Dict[str, str] = read_json(path)
    if not plan:
        return
    if os.path.isdir(plan["folder"]):
        write_json(os.path.join(place.beside, MADE), {"inode": os.lstat(plan["folder"]).st_ino})
        if plan["aside"] and os.path.lexists(place.workspace) and not os.path.lexists(plan["aside"]):
            os.rename(place.workspace, plan["aside"])
        os.rename(plan["folder"], place.workspace)
    if plan["state"] and os.path.isdir(plan["state"]):
        remove(place.state)
        os.rename(plan["state"], place.state)
    os.unlink(path)


def tidy(place: Place) -> None:
    """Remove unfinished folders of killed attempts."""
    for name in os.listdir(place.beside):
        if name.startswith(FRESH):
            remove(os.path.join(place.beside, name))


def is_ours(place: Place) -> bool:
    """Return whether yurt made the folder that is now the workspace."""
    made = read_json(os.path.join(place.beside, MADE)).get("inode")
    try:
        return made is not None and os.lstat(place.workspace).st_ino == made
    except OSError:
        return False


def note_made(place: Place) -> None:
    """Note that the present folder is the workspace: it is saved, also if the user has replaced it."""
    if not is_ours(place):
        write_json(os.path.join(place.beside, MADE), {"inode": os.lstat(place.workspace).st_ino})


def unused(path: str) -> str:
    """Return this path, or one with a number if it is taken."""
    found, number = path, 2
    while os.path.lexists(found):
        found, number = "%s-%d" % (path, number), number + 1
    return found
