"""Writes the input of poll.sh and parses its output. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from yurt.backends import scripts
from yurt.backends.slurm import states, wordings
from yurt.model import disk, ids, layout, tasks
from yurt.model.run import RunRef
from yurt.model.site_words import count
from yurt.model.state import OUT_OF_MEMORY, Observation, read_ending, read_metrics

KILLED_FOR_MEMORY = "memory "
"""What poll.sh prints instead of why a job was stopped, and when."""

METRICS_TAIL = 1 << 18
"""Bytes at the end of metrics.jsonl in which the last value of each metric is searched."""

RANK = {"running": 3, "starting": 2, "unknown": 1}
"""If a run has several jobs, the most advanced one determines its state."""


def poll_script() -> str:
    """Return poll.sh, with the lines by which Slurm says that it killed a job for its memory."""
    return f"memory_lines='{'|'.join(wordings.KILLED_FOR_MEMORY)}'\n" + scripts.text("poll.sh", "slurm")


def files_reader(folder: str) -> str:
    """Return the first lines of a poll, which print what a running run has written: see `poll.split_files`.

    Of the lines of metrics with the same names, they print the first, which decides the order, and the last.
    """
    metrics, usage = (shlex.quote(f"{folder}/{name}") for name in (layout.METRICS, layout.USAGE))
    return f"""\
tail -c {METRICS_TAIL} {metrics} 2> /dev/null < /dev/null | yurt_usage={usage} LC_ALL=C awk '
  {{ names = $0; gsub(/:[^,}}]*/, "", names); if (!(names in last)) print "|" $0; last[names] = NR; line[names] = $0 }}
  END {{
    for (names in last) at[last[names]] = line[names]
    for (n = 1; n <= NR; n++) if (n in at) print "|" at[n]
    while ((getline sample < ENVIRON["yurt_usage"]) > 0) print "~" sample
  }}'
"""


def poll_input(refs: Sequence[RunRef]) -> str:
    """Return the input of poll.sh: run ids, after the folder that contains them."""
    lines: list[str] = []
    last = ""
    for ref in refs:
        folder = ref.folder.rpartition("/")[0]
        if folder != last:
            lines.append(f"= {folder}")
            last = folder
        lines.append(f"{ref.id} {ref.open} {ref.offsets}" if ref.open else f"-{ref.id}" if ref.ended else ref.id)
    return "\n".join(lines) + "\n"


def read_poll(text: str, refs: Sequence[RunRef]) -> dict[str, Observation]:
    """Return the observation of each run. Runs whose row in the queue has not changed are omitted."""
    sections: dict[str, list[str]] = {}
    name = ""
    for line in text.split("\n"):
        if line.startswith("= "):
            name = line[2:]
            sections[name] = []
        elif line and name:
            sections[name].append(line)
    sweeps = {ref.id: ref for ref in refs if ref.open}
    queue, waiting = _by_run(sections.get("queue", []), sweeps)
    folders = {line.split("|", 1)[0]: line.split("|", 6) for line in sections.get("folders", []) if line[0] != "@"}
    logged = dict(line[1:].split("|", 1) for line in sections.get("folders", []) if line[0] == "@" and "|" in line)
    records, to_come = _by_run(sections.get("records", []), sweeps)
    known, uptime = "silent" not in sections, _uptime(sections.get("controller", []))
    found: dict[str, Observation] = {}
    arrays = {ref.id: _listed_arrays(ref, queue, waiting) for ref in sweeps.values()}
    for run in _changed_tasks(sweeps, queue, folders):
        sweep, number = ids.split_task(run) or ("", 0)
        seen = _observation(_of_task(run, queue, waiting), folders.get(run), _of_task(run, records, to_come), known)
        found[run] = msgspec.structs.replace(
            seen,
            metrics=read_metrics(logged.get(run, "")),
            uptime=uptime,
            array_listed=_offset(sweeps[sweep], number) in arrays[sweep],
        )
    for ref in refs:
        if ref.open:
            continue
        rows = queue.get(ref.id, [])
        if ref.mark and len(rows) == 1 and rows[0] == ref.mark and ref.id not in folders:
            continue
        split = [row.split("|") for row in rows]
        kept = [row.split("|") for row in records.get(ref.id, [])]
        seen = msgspec.structs.replace(_observation(split, folders.get(ref.id), kept, known), uptime=uptime)
        found[ref.id] = msgspec.structs.replace(seen, mark=rows[0]) if len(rows) == 1 else seen
    return found


def held_sweeps(text: str, refs: Sequence[RunRef]) -> dict[str, str]:
    """Return the sweeps of which all pending tasks are held, and why. The tasks of an array are one row."""
    sweeps = {ref.id for ref in refs if ref.open}
    reasons: dict[str, list[str]] = {}
    for line in text.partition("= folders\n")[0].split("\n") if sweeps else ():
        parts = line.split("|", 5)
        if len(parts) == 6 and parts[1] == "PENDING" and (run := layout.run_of(parts[5])) in sweeps:
            held = states.live(parts[1], parts[2]) == "held"
            reasons.setdefault(run, []).append(states.describe(parts[1], parts[2]) if held else "")
    return {run: each[0] for run, each in reasons.items() if all(each)}


def _uptime(lines: Sequence[str]) -> float | None:
    """Return the seconds since slurmctld started, from two times of the site's clock."""
    times = [read_time(line) for line in lines]
    return times[1] - times[0] if len(times) == 2 and times[0] is not None and times[1] is not None else None


def _offset(sweep: RunRef, number: int) -> int:
    """Return the offset of the array that a task belongs to."""
    return max((each for each in map(int, sweep.offsets.split(",")) if each <= number), default=0)


def _listed_arrays(
    sweep: RunRef, queue: Mapping[str, Sequence[str]], waiting: Mapping[str, Sequence[_Waiting]]
) -> set[int]:
    """Return the offsets of the arrays of a sweep that the queue lists with at least one unfinished task."""
    found = {each.offset for each in waiting.get(sweep.id, ())}
    for run, rows in queue.items():
        task = ids.split_task(run)
        if task and task[0] == sweep.id and any(states.live(*row.split("|")[1:3]) for row in rows):
            found.add(_offset(sweep, task[1]))
    return found


class _Waiting(msgspec.Struct, frozen=True):
    """One row of the queue for any number of pending tasks."""

    numbers: tasks.Within
    job: str
    offset: int
    rest: str

    def row(self, number: int) -> str:
        return f"{self.job}_{number - self.offset}{self.rest}"


def _changed_tasks(
    sweeps: Mapping[str, RunRef], queue: Mapping[str, Sequence[str]], folders: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield tasks that may have changed. Pending tasks are skipped: else the cost of a poll would grow with them."""
    changed = {run for run in (*queue, *folders) if "." in run}
    for sweep in sweeps.values():
        changed.update(ids.task(sweep.id, number) for number in tasks.numbers(sweep.begun))
    still = {sweep.id: tasks.Within(sweep.open) for sweep in sweeps.values()}
    for run in sorted(changed):
        sweep_id, number = ids.split_task(run) or ("", 0)
        if sweep_id in still and number in still[sweep_id]:
            yield run


def _of_task(run: str, rows: Mapping[str, Sequence[str]], waiting: Mapping[str, Sequence[_Waiting]]) -> list[list[str]]:
    sweep, number = ids.split_task(run) or ("", 0)
    found = [each.row(number) for each in waiting.get(sweep, ()) if number in each.numbers]
    return [row.split("|") for row in (*found, *rows.get(run, ()))]


def _by_run(
    lines: Sequence[str], sweeps: Mapping[str, RunRef]
) -> tuple[dict[str, list[str]], dict[str, list[_Waiting]]]:
    """Return rows by the run in their last column, which is dropped; and rows of pending tasks by sweep."""
    found: dict[str, list[str]] = {}
    waiting: dict[str, list[_Waiting]] = {}
    for line in lines:
        parts = line.split("|", 5)
        run = layout.run_of(parts[-1]) if len(parts) == 6 else ""
        if not run:
            continue
        rest = line[: -len(parts[5]) - 1]
        if run not in sweeps:
            found.setdefault(run, []).append(rest)
            continue
        job, _, array = parts[0].partition("_")
        array, rest, offset = array.strip("[]"), rest[len(parts[0]) :], layout.offset_of(parts[5])
        if parts[1] == "PENDING" and parts[2] != states.UNLAUNCHED:
            waiting.setdefault(run, []).append(_Waiting(tasks.Within(array, offset), job, offset, rest))
            continue
        if not array and states.word(parts[1]) == states.CANCELLED:  # cancelled as a whole, while it was pending
            later = [each for each in map(int, sweeps[run].offsets.split(",")) if each > offset]
            span = f"0-{min(later, default=10**9) - offset - 1}"
            waiting.setdefault(run, []).append(_Waiting(tasks.Within(span, offset), job, offset, rest))
            continue
        for number in tasks.numbers(array):
            found.setdefault(ids.task(run, number + offset), []).append(f"{job}_{number}{rest}")
    return found, waiting


def _observation(
    queue: list[list[str]], folder: list[str] | None, records: list[list[str]], records_known: bool
) -> Observation:
    seen = _looked_at(queue, folder, records, records_known)
    if seen.stopped.startswith(KILLED_FOR_MEMORY):
        at = seen.stopped.removeprefix(KILLED_FOR_MEMORY)
        seen = msgspec.structs.replace(seen, stopped="")
        if seen.live is None:
            return msgspec.structs.replace(
                seen,
                record="out_of_memory",
                reason=OUT_OF_MEMORY,
                native=seen.native if states.ended(seen.native) else states.NATIVES["out_of_memory"],
                ended=seen.ended or disk.number(at),
            )
    if seen.ending is None or states.ended(seen.native) is not None:
        return seen
    # The queue may still list its job as running, and a site without accounting soon lists nothing.
    return msgspec.structs.replace(seen, native=states.native_of(seen.ending))


def _looked_at(
    queue: list[list[str]], folder: list[str] | None, records: list[list[str]], records_known: bool
) -> Observation:
    parts = folder if folder is not None and len(folder) == 7 else [""] * 7
    _id, winner, generation, start, stopped, over, ending = parts
    found = Observation(
        winner="" if winner == "gone" else winner,
        gone=winner == "gone",
        generation=count(generation),
        start=start,
        stopped=stopped,
        over=over,
        ending=read_ending(ending),
        records_known=records_known,
    )
    rows = [(states.live(row[1], row[2]), row) for row in queue]
    alive = [(state, row) for state, row in rows if state is not None]
    if alive:
        state, row = max(alive, key=lambda each: RANK.get(each[0], 0))
        return msgspec.structs.replace(
            found,
            live=state,
            job=row[0],
            native=_native(row[1], row[2]),
            reason=states.describe(row[1], row[2]),
            unlaunched=row[2] == states.UNLAUNCHED,
            node=row[4],
            started=read_time(row[3]) if state not in ("queued", "held") else None,
        )
    return _from_records(found, queue, records)


def _from_records(found: Observation, queue: list[list[str]], records: list[list[str]]) -> Observation:
    """Add the final state of a job: squeue lists it for a while, sacct for long."""
    winner = found.last_job
    # Rows of duplicates that stopped at the gate do not concern the run.
    ended: list[tuple[str, str, str, float | None, float | None]]
    ended = [(row[0], row[1], row[4], None, None) for row in queue]
    ended += [(row[0], row[1], row[4], read_time(row[2]), read_time(row[3])) for row in records]
    own = [row for row in ended if not winner or row[0] == winner] or []
    final = [row for row in own if states.ended(row[1]) is not None]
    if not final:
        return msgspec.structs.replace(found, native=states.word(own[-1][1]) if own else "")
    job, text, node, started, over = final[-1]
    node = "" if node == "None assigned" else node
    # A job that had a node and was cancelled before anything started failed to launch.
    unlaunched = not found.generation and bool(node) and states.word(text) == states.CANCELLED
    return msgspec.structs.replace(
        found,
        record=states.ended(text),
        native=text if text == states.BY_ROOT else states.word(text),
        reason=states.describe(text, ""),
        job=job,
        node=node,
        preempted=states.word(text) == states.PREEMPTED,
        unlaunched=unlaunched,
        started=started if found.generation else None,
        ended=over,
    )


def read_time(text: str) -> float | None:
    """Return the Unix time of Slurm's 2026-01-31T12:00:00, which is in UTC; None for N/A and Unknown."""
    try:
        fields = [int(text[at:to]) for at, to in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))]
    except ValueError:
        return None
    import calendar

    return float(calendar.timegm((*fields, 0, 0, 0)))


def _native(word: str, reason: str) -> str:
    return word if reason in wordings.NOTHING else f"{word} ({reason})"
