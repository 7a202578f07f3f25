"""context probe: ask a site what it is like, and keep the answer."""

from __future__ import annotations

from yurt.config import contexts
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched
from yurt.sites.facts import INTERNET, ask, ask_node
from yurt.verbs.result import Result


def probe(
    name: str = "", *, deep: bool = False, internet: str = "", patience: int = 120, watch: Watch = unwatched
) -> Result[Facts]:
    """Ask the site of a context, else of the current one.

    `deep`: also one of its nodes, by a job that has `patience` seconds to start and tries to reach `internet`.
    """
    context = contexts.named(contexts.current_name(name))
    if deep:
        found = ask_node(context, internet=internet or INTERNET, patience=patience, watch=watch)
    else:
        found = ask(context, watch=watch)
    return Result(kind="facts", data=found)
