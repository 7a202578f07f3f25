"""Completes a plan with the facts of its site.

A run whose site is unreachable and was never probed is saved as a draft. It is settled when the site responds.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from yurt.backends.kinds import kind_of
from yurt.clocks import clocks
from yurt.contexts import bad_nodes, connect
from yurt.contexts.facts import ask, facts_if_probed, internet_of_nodes
from yurt.contexts.folders import expand, project_folder
from yurt.errors import RefusedError, UnreachableError, UserError, YurtError
from yurt.lifecycle.plan import scheduling, staging
from yurt.lifecycle.plan.request import Planned, Unsettled
from yurt.lifecycle.plan.scheduling import Needs
from yurt.model import layout, time_limit
from yurt.model.context import Context
from yurt.model.env import RunEnv
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched
from yurt.model.run import Plan, Resources, RestartPolicy, Setup
from yurt.model.stage import StageRequest
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.envs.of_runs.prepare import Prepared

ENGINES = ("apptainer", "singularity")
SQUASHED = (".sqsh", ".squashfs")
"""Image files that Pyxis uses as they are."""

FRESH, NOW = 600.0, 5.0
"""Facts older than NOW seconds are refreshed before a run is rejected because of them; the site may have changed. If it
is unreachable, facts up to FRESH seconds old count."""

_LESS = {
    " GPU": "leave out `--gpus`",
    " core": "request fewer cores with `--cpus`",
    " memory": "request less memory with `--mem`",
    " node": "leave out `--nodes`",
}
"""The hint for what this machine cannot provide, by a word of the fault."""


class Draft(msgspec.Struct, frozen=True):
    """A plan without anything that depends on the facts of its site, and what is needed to complete it."""

    plan: Plan
    context: Context
    """The context with the options of the request, without its variables, which are in the plan."""
    needs: Needs
    declared: bytes = b""
    """What declares the environment that yurt builds for the run, as JSON; empty if it builds none."""
    python: str = ""
    """The version that the Python of that environment has if possible, such as 3.11; empty for any."""
    stage: StageRequest = StageRequest()
    """What it stages on the disk of its node."""


def facts_for(context: Context, needs: Needs, label: str, watch: Watch) -> Facts | None:
    """Return facts of the site that allow a run. UnreachableError if there are none; RefusedError if they do not."""
    return check(context, needs.checked, facts_if_probed(context, watch=watch), label=label, watch=watch)


def check(context: Context, resources: Resources, facts: Facts | None, *, label: str, watch: Watch) -> Facts | None:
    """Return facts that allow the run. RefusedError if they do not; facts that are not fresh are probed again first."""
    runs, folder = connect.backend(context).runs, project_folder(context, facts, label)
    faults = runs.check(resources, facts, folder)
    age = 0 if facts is None else time.time() - facts.probed_at
    if faults and facts is not None and age > NOW:
        try:
            facts = ask(context, watch=watch)
            faults = runs.check(resources, facts, folder)
        except UnreachableError:
            if age > FRESH:
                raise
    if faults:
        problems = "; ".join(faults)
        if kind_of(context.type).here:
            less = next((hint for word, hint in _LESS.items() if word in faults[0]), "request less")
            hint = f"{less}, or run on a cluster with `--context NAME`"
        else:
            hint = f"see what the site offers with `yurt cluster {context.name}`"
        raise RefusedError(f"{context.name}: {problems}", code="impossible", hint=hint)
    return facts


def settle(draft: Draft, facts: Facts | None, index: Store | None, watch: Watch = unwatched) -> Planned:
    """Return the complete plan. UserError: a path of the context does not exist in this form on the site."""
    plan, run = draft.plan, draft.plan.run
    needs = scheduling.settled(draft.needs, draft.context.name, facts, index)
    context, warnings = in_home_of_site(draft.context, facts)
    folder = project_folder(context, facts, run.project)
    asked = time_limit.asked_in(run.settings)
    limit = time_limit.seconds(run.context_type, needs.minutes, asked)
    env, packages = None, dict[str, str]()
    if draft.declared and facts is not None:
        prepared = _env(draft, context, facts, watch)
        env, packages, warnings = prepared.env, prepared.packages, [*warnings, *prepared.notes]
    run = msgspec.structs.replace(
        run,
        folder=(layout.sweep if run.tasks else layout.run)(folder, run.id),
        resources=needs.resources,
        restart_policy=with_signal(run.restart_policy, limit),
        env=env,
        stage=staging.resolved(draft.stage, context, facts, needs.minutes) if draft.stage else None,
        settings=[*run.settings, *bad_nodes.as_settings(needs.avoided)],
    )
    made = msgspec.structs.replace(
        plan,
        run=run,
        project_folder=folder,
        variables={**_scratch(context, facts), **plan.variables},
        setup=_setup(context, facts, env),
        packages=packages,
        use_srun=needs.use_srun,
        limit=limit,
        follow=facts is not None and not facts.requeue,
    )
    return Planned(made, [*needs.warnings, *time_limit.rounded(run.context_type, needs.minutes, asked), *warnings])


def unsettled(draft: Draft, why: UnreachableError) -> Planned:
    """Return the plan of a draft whose site is unreachable."""
    run, needs = draft.plan.run, draft.needs
    with_signal(run.restart_policy, time_limit.seconds(run.context_type, needs.resources.minutes, draft.context.time))
    return Planned(draft.plan, needs.warnings, Unsettled(msgspec.json.encode(draft), why))


def _env(draft: Draft, context: Context, facts: Facts, watch: Watch) -> Prepared:
    """Return the environment that yurt builds for a run. The hint of an error says how to do without it."""
    from yurt.envs.declared import Declared
    from yurt.envs.of_runs.prepare import prepare

    declared, project = msgspec.json.decode(draft.declared, type=Declared), draft.plan.run.project
    try:
        return prepare(declared, context, facts, project, like=draft.python, watch=watch)
    except YurtError as error:
        without = "use `--env none` to run without this environment"
        if "--env none" not in error.hint:
            error.hint = f"{error.hint}; or {without}" if error.hint else without
        raise


def settle_later(encoded: bytes, now: Context, index: Store, watch: Watch = unwatched) -> Planned:
    """Settle a saved draft. `now`: its context as it is today, whose address may have been corrected since."""
    draft = msgspec.json.decode(encoded, type=Draft)
    context = msgspec.structs.replace(
        draft.context, slurm_url=now.slurm_url, ssh_options=now.ssh_options, ssh_command=now.ssh_command
    )
    facts = facts_for(context, draft.needs, draft.plan.run.project, watch)
    return settle(msgspec.structs.replace(draft, context=context), facts, index, watch)


def with_plan(encoded: bytes, plan: Plan) -> bytes:
    """Return a saved draft with another plan, such as that of a candidate of a race."""
    return msgspec.json.encode(msgspec.structs.replace(msgspec.json.decode(encoded, type=Draft), plan=plan))


def with_signal(wanted: RestartPolicy, limit: int | None) -> RestartPolicy:
    """Fill in when the run is signalled before its time limit, which is in seconds."""
    if not wanted.max_requeues or limit is None:
        return wanted
    given, usual = wanted.signal_before, max(1, min(120, limit // 4))
    if given >= limit:
        raise UserError(
            f"--signal-before ({given} s) must be shorter than the time limit ({limit} s)",
            code="usage",
            hint=f"for example: `--signal-before {usual}s`",
        )
    return msgspec.structs.replace(wanted, signal_before=given or usual)


def in_home_of_site(wanted: Context, facts: Facts | None) -> tuple[Context, list[str]]:
    """Return the context with paths in the home folder of the site that a shell here took for this machine's."""
    here, there = str(Path.home()), facts.variables.get("HOME", "") if facts is not None else ""
    if not there or there == here or len(here) < 2:
        return wanted, []
    found = {
        key: there + value.removeprefix(here)
        for key in ("venv", "conda", "container")
        if (value := getattr(wanted, key)) is not None and value.startswith(f"{here}/")
    }
    warnings = [
        f"{key} {getattr(wanted, key)} is in the home folder of this machine; using {path} on {wanted.name}"
        f" (write '~{path.removeprefix(there)}' in quotes)"
        for key, path in found.items()
    ]
    return msgspec.structs.replace(wanted, **found), warnings


def _scratch(context: Context, facts: Facts | None) -> dict[str, bytes]:
    """Return the variable with the folder for scratch files of a context, if it has one."""
    given = context.scratch_dir
    if not given:
        return {}
    below = given if given[0] in "/~$" else f"$SCRATCH/{given}"
    return {"YURT_SCRATCH": os.fsencode(expand(context, facts, below, "scratch_dir"))}


def _setup(context: Context, facts: Facts | None, env: RunEnv | None) -> Setup:
    image = _image(context, facts)
    return Setup(
        profile=int(clocks().profile) if context.login_profile and not kind_of(context.type).here else 0,
        modules=[*context.modules_to_load, *(env.modules if env is not None else ())],
        modules_init=facts.modules_init if facts is not None else "",
        after_modules=context.after_module_load_cmd or "",
        env=env.folder if env is not None else "",
        unpack=env is not None and env.place == "tmpdir",
        venv=expand(context, facts, context.venv, "venv") if context.venv else "",
        conda=context.conda or "",
        container=image,
        pyxis=pyxis_image(image, facts),
        offline=facts is not None and internet_of_nodes(context, facts) is False,
    )


def _image(context: Context, facts: Facts | None) -> str:
    image = context.container or ""
    return expand(context, facts, image, "container") if image[:1] in ("~", "$") else image


def pyxis_image(image: str, facts: Facts | None) -> str:
    """Return the image as Pyxis names it; empty if Apptainer or Singularity starts the container.

    A file is for Pyxis if its name says that it is a squashfs image, and a name with `#` is one of Pyxis. Images of a
    registry are for Pyxis if the site has no other engine.
    """
    if not image or facts is None or "pyxis" not in facts.tools:
        return ""
    if image.endswith(SQUASHED):
        return image if image.startswith(("/", "./")) else f"./{image}"  # else Pyxis takes it for one of a registry
    scheme, colon, _rest = image.partition("://")
    if image[0] in "/." or image.endswith(".sif") or (colon and scheme != "docker"):
        return ""
    name = image.removeprefix("docker://")
    if "#" in name:
        return name
    engines = {*facts.tools, *(facts.node.tools if facts.node is not None else ())}
    if engines.intersection(ENGINES):
        return ""
    name = name.removeprefix("index.docker.io/").removeprefix("docker.io/")
    host, slash, path = name.partition("/")
    is_host = slash and ("." in host or ":" in host or host == "localhost")
    return f"{host}#{path}" if is_host else name
