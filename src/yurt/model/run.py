"""A run: what was asked for (never changes) and how it stands (changes). Pure values."""

from typing import Any, Literal

import msgspec

State = Literal[
    "waiting",
    "submitting",
    "held",
    "queued",
    "starting",
    "running",
    "requeued",
    "unknown",
    "completed",
    "failed",
    "timeout",
    "out_of_memory",
    "cancelled",
    "node_failed",
    "lost",
]

FINAL: frozenset[State] = frozenset(
    ("completed", "failed", "timeout", "out_of_memory", "cancelled", "node_failed", "lost")
)


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of a run, as numbers; None is whatever the site gives."""

    cpus: int | None = None
    gpus: int | None = None
    gpu_type: str | None = None
    memory_mb: int | None = None
    minutes: int | None = None
    ntasks: int | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    nodelist: str | None = None
    exclude_nodes: str | None = None


class Chosen(msgspec.Struct, frozen=True):
    """A setting of a run, and where it came from."""

    key: str
    value: Any
    source: str


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """Which code a run has: a snapshot, and where in git its folder stood."""

    tree: str = ""
    """Empty: no snapshot."""
    files: int = 0
    size: int = 0
    commit: str = ""
    dirty: bool = False
    """Whether the files were not those of the commit."""
    branch: str = ""


class RestartPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a run may be started again, with what it saved."""

    max_requeues: int = 0
    """How often after its time limit, or when it asks for it; where it may, also whenever its site stops it."""
    signal_before: int = 0
    """Seconds before the limit at which it is told to save."""
    retries: int = 0
    """How often after a failure of the site's."""
    retry_errors: bool = False
    """Whether an error of its own counts as such a failure."""

    def __bool__(self) -> bool:
        return bool(self.max_requeues or self.retries)


class After(msgspec.Struct, frozen=True, kw_only=True):
    """A run that another one follows."""

    run: str
    folder: str = ""
    """Where the follower's own site has it; empty if it is on another one."""
    ended: bool = False
    """Whether it is enough that it has ended, however."""


Purpose = Literal["run", "dev", "service"]
"""What a run is for: a command of the user's, an interactive node, something that listens on a port."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """One place where a run is, or may be, executed."""

    context: str
    context_type: str
    folder: str
    """The run folder on the context."""
    resources: Resources
    job: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for; the content of run.json."""

    id: str
    context: str
    context_type: str
    """local, slurm or kubernetes."""
    project: str
    source: str
    """The project's folder on the machine the run was made on."""
    created: float
    command: list[str]
    """As typed; bytes that are no text stand as \\xNN."""
    folder: str
    """The run folder on the context."""
    purpose: Purpose = "run"
    name: str = ""
    params: dict[str, Any] = {}
    tags: list[str] = []
    note: str = ""
    subfolder: str = ""
    """Where below the project's folder the command starts."""
    resources: Resources = Resources()
    code: Code = Code()
    restart_policy: RestartPolicy = RestartPolicy()
    tasks: int = 0
    """How many tasks it has, each with parameters of its own, if it is a sweep; else 0."""
    sweep: str = ""
    """The sweep it is a task of."""
    task: int | None = None
    """Which task of that."""
    after: list[After] = []
    """Runs that come before it."""
    retry_of: str = ""
    """The run whose plan it has, if it was made by `retry`."""
    retried: str = ""
    """Which tasks of that, as ranges, if they are not all."""
    settings: list[Chosen] = []
    secrets: list[str] = []
    """Names of variables whose values travel apart, and are written down nowhere."""
    user: str = ""
    host: str = ""
    yurt_version: str = ""


class RunRef(msgspec.Struct, frozen=True):
    """Where a run is to be looked for."""

    id: str
    folder: str
    created: float
    mark: str = ""
    """How the site's queue had it at the last look, in the queue's own words; empty if that said nothing for sure."""
    open: str = ""
    """Of a sweep: which tasks have not ended, as ranges."""
    begun: str = ""
    """Which of these are known to have begun."""
    offsets: str = "0"
    """What was added to the numbers of its arrays."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands, as far as this machine has seen."""

    state: State = "waiting"
    reason: str = ""
    """Why, in words."""
    native: str = ""
    """The scheduler's own word and reason."""
    job: str = ""
    node: str = ""
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    restarts: int = 0
    seconds: float | None = None
    """How long it ran, over all its starts; known when it has ended."""
    start: int = 1
    """Which start is to be submitted next, where it waits for that."""
    retries: int = 0
    """How often it was submitted again because its site failed it before it started."""
    seen_at: float | None = None
    """When the site last said something of it."""
    confirmed: bool = False
    """Whether the queue still had it some time after its submission: no crash lets it vanish any more."""
    missing_since: float | None = None
    attempts: int = 0
    """How often it was, or may have been, submitted."""
    cancel_requested: bool = False
    """Whether the user wants it ended and the site has not been told yet."""
    metrics: dict[str, Any] = {}
    """Of a task: the last numbers it logged."""
    task_states: dict[str, int] = {}
    """Of a sweep: how many of its tasks are in which state."""
    submitted_tasks: str = ""
    """Of a sweep: which tasks have gone out, as ranges."""
    offsets: list[str] = []
    """Of a sweep: what was added to the numbers of its arrays."""
    other_machine: bool = False
    """Of a sweep: whether another machine sends it; from here nothing of it goes out that has not been out."""

    @property
    def final(self) -> bool:
        return self.state in FINAL


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How the environment of a command is made, in this order."""

    modules: list[str] = []
    modules_init: str = ""
    after_modules: str = ""
    venv: str = ""
    conda: str = ""
    container: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that is needed to submit a run, in parts of which its files are made: another run may have the same ones."""

    run: Run
    project_folder: str
    """On the context."""
    store: str
    """The git folder on this machine that holds the snapshot."""
    words: list[bytes]
    """The command."""
    variables: dict[str, bytes] = {}
    setup: Setup = Setup()
    native_options: dict[str, str | None] = {}
    """Options in the words of the context's own scheduler."""
    native_lines: list[str] = []
    """Lines of the user's own script that are for that scheduler."""
    use_srun: bool = False
    """Whether the scheduler's own launcher starts the command, once for each of its tasks."""
    limit: int | None = None
    """Of time, in seconds."""
    lease: int = 60
    """Seconds in which a start must have shown that it is alive, where another may follow it."""
    grace: int = 10
    """Seconds between the signal to stop and the one that kills, where no scheduler sees to it."""
    place: str = ""
    """A folder to start in, instead of one made of the code."""
    copy: bool = False
    sets: list[dict[str, Any]] = []
    """The parameters of each task of a sweep, beside those of the run."""
    arguments: bool = True
    """Whether the parameters of a task are arguments of its command, too."""
    parallel: int | None = None
    """How many tasks may run at a time."""
    follow: bool = False
    """Whether its next start is another job: its site does not requeue jobs."""
    calls: bool = False
    """Whether its tasks are calls of functions, which travel in a file of their own."""
