"""Chooses the packages of an environment, with those of the site's wheelhouse where the context names one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from yurt.contexts import connect
from yurt.envs.declared import Declared
from yurt.envs.lock import Lock
from yurt.envs.resolve import resolve
from yurt.envs.target import Target
from yurt.errors import RefusedError
from yurt.model.context import Context
from yurt.model.env import SitePython
from yurt.model.facts import Facts
from yurt.model.progress import Event, Watch, unwatched


def choose_packages(
    declared: Declared,
    target: Target,
    python: SitePython,
    context: Context,
    facts: Facts,
    *,
    modules: Sequence[str] = (),
    torch: str = "",
    builds: Collection[str] = (),
    watch: Watch = unwatched,
) -> Lock:
    """Return the versions of all packages. Errors as in `resolve`; RefusedError if there is no such wheelhouse.

    `modules` are loaded before the wheelhouse is read. `torch` and `builds`: see `resolve`; `torch` has no effect with
    a wheelhouse.
    """
    watch(Event(f"choosing the packages of {declared.title}"))
    if not context.wheelhouse:
        return resolve(declared, target, torch=torch, builds=builds, watch=watch)
    from yurt.envs import wheelhouse

    envs = connect.backend(context).envs
    names, asked = wheelhouse.names(declared), set[str]()
    offered, refused = list[wheelhouse.Offer](), set[wheelhouse.Offer]()
    while True:
        if new := names - asked:
            watch(Event(f"reading the wheelhouse of {context.name}"))
            found = envs.wheelhouse(python, facts.modules_init, modules, context.wheelhouse, sorted(new))
            if found.missing:
                raise _missing(context, found.missing[0])
            asked |= new | set(found.asked)
            known = {each.wheel.path for each in offered}
            offered += [each for each in wheelhouse.offers(found.wheels, target) if each.wheel.path not in known]
        usable = [each for each in offered if each not in refused]
        lock = resolve(declared, target, offered=usable, builds=builds, watch=watch)
        chosen = wheelhouse.taken(lock, usable)
        unfit = wheelhouse.unfit(chosen, lock, target)
        refused |= set(unfit)
        names = {each.name for each in lock.packages}
        if not unfit and names <= asked:
            break
    paths = [each.wheel.path for each in chosen.values()]
    sums = envs.sums(paths) if paths else []
    return lock.from_wheelhouse(dict(zip(chosen, zip(paths, sums, strict=True), strict=True)))


def _missing(context: Context, folder: str) -> RefusedError:
    return RefusedError(
        f"{context.name} has no folder '{folder}', which `wheelhouse` of the context names",
        code="impossible",
        hint=f"correct it with `yurt context edit {context.name}`",
    )
