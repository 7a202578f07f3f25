"""What a request, or an existing run, asks of each context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from yurt.backends.slurm.options import Script, long_name, read_script
from yurt.config import precedence
from yurt.config.precedence import Setting
from yurt.errors import UserError
from yurt.lifecycle.plan import scheduling
from yurt.lifecycle.plan.request import Request
from yurt.model.context import Context
from yurt.model.resources import parse_time
from yurt.model.run import Plan, Resources
from yurt.model.settings import TABLE

MOVED = tuple(row.resource for row in TABLE if row.resource and row.scheduler and row.form == "text")
"""Resources that name something of one site, and mean nothing on another."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks of one context."""

    context: Context
    """With the settings of the request and the project."""
    resources: Resources
    options: dict[str, str | None] = {}
    """Further options of the scheduler."""
    only: list[str] = []
    """The partitions that the user names; empty if any will do."""
    memory_mb: int | None = None
    """The memory that a node needs, if it is requested per core."""

    @property
    def key(self) -> str:
        """A text that is equal for equal requests, whatever their partition."""
        anywhere = msgspec.structs.replace(self.resources, partition=None)
        named = {name: value for name, value in self.options.items() if name not in ("hold", "comment", "dependency")}
        return msgspec.json.encode([anywhere, sorted(named.items(), key=lambda each: each[0])]).decode()


def of_request(context: Context, request: Request, script: Script | None = None) -> Wanted:
    """Return what a request asks of a context. UserError if an option is invalid."""
    settings = precedence.resolve(context, request.flags, request.entry)
    wanted = precedence.as_context(context.name, settings)
    needs = scheduling.needs_of(wanted, settings, script, flags=request.flags, hold=request.hold)
    resources, options = _plain(needs.resources, needs.all_options)
    named = _names_partition(settings, request, needs.all_options)
    return Wanted(
        context=wanted,
        resources=resources,
        options=options,
        only=(resources.partition or "").split(",") if named and resources.partition else [],
        memory_mb=needs.checked.memory_mb,
    )


def of_run(plan: Plan, context: Context) -> Wanted:
    """Return what an existing run asks of its own context."""
    settings = precedence.resolve(context)
    wanted = precedence.as_context(context.name, settings)
    options = {**read_script("\n".join(plan.native_lines)).options, **plan.native_options}
    resources, options = _plain(plan.run.resources, options)
    return Wanted(context=wanted, resources=resources, options=options)


def elsewhere(resources: Resources) -> Request:
    """Return the request for the resources of a run on another context, without what names things of its own."""
    moved = msgspec.structs.replace(resources, **dict.fromkeys(MOVED))
    gpus = f"{moved.gpu_type}:{moved.gpus}" if moved.gpus and moved.gpu_type else moved.gpus
    parts = {"cpu": moved.cpus, "gpu": gpus, "mem": f"{moved.memory_mb}M" if moved.memory_mb else None}
    flags = {
        "resources": {key: str(value) for key, value in parts.items() if value},
        "time": f"{moved.minutes}m" if moved.minutes else None,
        "nodes": moved.nodes,
        "ntasks": moved.ntasks,
    }
    return Request(words=(), flags=flags)


def _plain(resources: Resources, options: Mapping[str, str | None]) -> tuple[Resources, dict[str, str | None]]:
    """Return resources and options with the partition and the time limit among the resources."""
    found = {long_name(name): value for name, value in options.items()}
    if partition := found.pop("partition", None):
        resources = msgspec.structs.replace(resources, partition=partition)
    try:
        if limit := found.get("time"):
            resources = msgspec.structs.replace(resources, minutes=parse_time(limit))
            del found["time"]
    except ValueError:
        pass
    return resources, found


def _names_partition(settings: Mapping[str, Setting], request: Request, options: Mapping[str, str | None]) -> bool:
    by_hand = request.flags.get("partition") or settings["partition"].source.startswith("$")
    return bool(by_hand) or "partition" in {long_name(name) for name in options}


def named_contexts(texts: Sequence[str]) -> list[str]:
    """Return the names in texts such as `alpha,beta`. UserError if there is none."""
    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    if texts and any(texts) and not names:
        raise UserError("--context names no context", code="usage", hint="for example: `--context alpha,beta`")
    return list(dict.fromkeys(names))
