"""context probe: query a site and save the facts."""

from __future__ import annotations

from yurt.config import contexts
from yurt.contexts.facts import INTERNET, ask, ask_node, cautions
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result


def probe(
    name: str = "", *, deep: bool = False, internet: str = "", timeout: int = 120, watch: Watch = unwatched
) -> Result[Facts]:
    """Query the site of a context, by default the current context.

    `deep`: also query a compute node, with a job that must start within `timeout` seconds and that connects to
    `internet`.
    """
    context = contexts.site(contexts.current_name(name))
    if deep:
        found = ask_node(context, internet=internet or INTERNET, patience=timeout, watch=watch)
    else:
        found = ask(context, watch=watch)
    return Result(kind="facts", data=found, warnings=cautions(found))
