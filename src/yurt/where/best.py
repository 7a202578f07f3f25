"""Chooses the context and the partition where a request starts first, with the time to copy what it needs there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.contexts.facts import facts_if_probed
from yurt.contexts.project import Project
from yurt.envs.of_runs import choose
from yurt.errors import RefusedError, UnreachableError, UserError, YurtError
from yurt.lifecycle.plan import command, holders, staging
from yurt.lifecycle.plan.request import Request
from yurt.model.progress import Watch, unwatched
from yurt.model.where import ExpectedStart, Starts
from yurt.store import Store
from yurt.where import allowed
from yurt.where.everywhere import everywhere, why
from yurt.where.transfer import Transfer, transfer
from yurt.where.wanted import Wanted, of_request


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """The best start on one context."""

    context: str
    start: ExpectedStart | None = None
    """Null if it cannot start there, or that is unknown."""
    transfer: Transfer = Transfer()
    why_not: str = ""
    """Why it cannot start there; empty if it can."""

    @property
    def seconds(self) -> float:
        """The expected wait, with the time to copy what it needs."""
        if self.start is None or self.start.likely is None:
            return float("inf")
        return max(self.start.likely, self.transfer.seconds)


def choose_best(store: Store, request: Request, watch: Watch = unwatched) -> tuple[list[Candidate], Request]:
    """Return the contexts that the project may use, the best first, and the request for the first of them.

    UserError: there is no context to choose from. RefusedError: none can start it. UnreachableError: none responds.
    """
    project = Project(request.project)
    program = holders.program_of(request)
    words = request.words or (program.words if program is not None else ())
    what = command.read(words, project)
    if what.sbatch is not None:
        request = command.with_script(request, what.sbatch)
    stage = staging.requested(request.stage)
    problems: dict[str, YurtError] = {}
    needs: dict[str, tuple[Wanted, Sequence[str]]] = {}
    chosen = allowed.candidates()
    for context in chosen:
        try:
            wanted = of_request(context, request, what.sbatch)
            staged = staging.resolved(stage, wanted.context, facts_if_probed(context), None) if stage else None
            needs[context.name] = wanted, [each.path for each in staged.inputs] if staged is not None else []
        except YurtError as error:
            problems[context.name] = error
    open_ = [each for each in chosen if each.name in needs]
    found, failed = everywhere(store, open_, lambda each: needs[each.name], project.label, watch)
    problems |= failed
    made = []
    for context in chosen:
        if context.name in found:
            wanted = needs[context.name][0]
            builds = choose.chosen(wanted.context, what.argv, project, own_setup=what.sbatch is not None)[0] is not None
            missing = transfer(store, context, project.label, builds=builds)
            made.append(_candidate(found[context.name], missing))
        else:
            made.append(Candidate(context=context.name, why_not=why(context.name, problems[context.name])))
    made.sort(key=lambda each: (bool(each.why_not), each.seconds))
    if made[0].why_not:
        raise _none(made, problems)
    start = made[0].start
    if start is not None and start.partition and not start.own:
        request = msgspec.structs.replace(request, flags={**request.flags, "partition": start.partition})
    return made, request


def _candidate(found: Starts, missing: Transfer) -> Candidate:
    """Return the best start on a context. A partition whose jobs are preempted counts only if the user chose it."""
    if found.absent:
        return Candidate(context=found.context, why_not=f"{found.absent[0]} does not exist there")
    rows = [row for row in found.rows if row.possible and (row.own or not row.preempted)]
    if not rows:
        reasons = [row.why_not for row in found.rows if row.why_not]
        return Candidate(context=found.context, why_not=reasons[0] if reasons else "it has no partition for it")
    return Candidate(context=found.context, start=rows[0], transfer=missing)


def _none(made: Sequence[Candidate], problems: dict[str, YurtError]) -> YurtError:
    text = "; ".join(f"{each.context}: {each.why_not}" for each in made)
    if len(problems) == len(made) and all(isinstance(each, UnreachableError) for each in problems.values()):
        return UnreachableError(
            f"no context responds: {text}",
            code="not-responding",
            hint="name a context with `--context` to save the run",
        )
    if len(problems) == len(made) and all(isinstance(each, UserError) for each in problems.values()):
        return next(iter(problems.values()))
    return RefusedError(
        f"no context can start it: {text}", code="impossible", hint="see what each can take with `yurt where`"
    )
