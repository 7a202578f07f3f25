"""A run: its request, which never changes, and its status, which does. Pure values."""

from typing import Any, Literal

import msgspec

from yurt.model.env import RunEnv
from yurt.model.usage import Usage

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
    """The resources of a run, as numbers; None is the site's default."""

    cpus: int | None = None
    gpus: int | None = None
    gpu_type: str | None = None
    memory_mb: int | None = None
    minutes: int | None = None
    nodes: str | None = None
    ntasks: int | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    nodelist: str | None = None
    exclude_nodes: str | None = None


class Chosen(msgspec.Struct, frozen=True):
    """A setting of a run and its source."""

    key: str
    value: Any
    source: str


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """The code of a run: its snapshot, and the git state of the project folder."""

    tree: str = ""
    """The id of the snapshot; empty without one."""
    files: int = 0
    size: int = 0
    commit: str = ""
    dirty: bool = False
    """Whether the files differed from the commit."""
    branch: str = ""


class RestartPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a run may be started again with its saved checkpoints."""

    max_requeues: int = 0
    """Maximum number of restarts after the time limit, or at the run's own request; if above 0, it is also restarted
    whenever the site stops it."""
    signal_before: int = 0
    """Seconds before the time limit at which it receives a signal to save."""
    retries: int = 0
    """Maximum number of restarts after a node or site failure."""
    retry_errors: bool = False
    """Whether to restart also when the command itself fails."""

    def __bool__(self) -> bool:
        return bool(self.max_requeues or self.retries)


class After(msgspec.Struct, frozen=True, kw_only=True):
    """A run that another run depends on."""

    run: str
    folder: str = ""
    """Its run folder on the site of the dependent run; empty if it is on another site."""
    ended: bool = False
    """Whether any final state is sufficient, not only completed."""


Purpose = Literal["run", "shell", "dev", "service"]
"""The purpose of a run: a command, an interactive node, a service that listens on a port."""


class StageInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input of a run on the disk of its node."""

    name: str
    """Its name in $YURT_STAGE."""
    place: str
    """Its place as the user named it, such as project:datasets/cifar."""
    path: str
    """The path of that place on the site."""


class StageOutput(msgspec.Struct, frozen=True, kw_only=True):
    """An output of a run on the disk of its node."""

    name: str
    """Its name in $YURT_STAGE."""
    place: str = ""
    """The place that it is copied to, as the user named it; empty for the outputs of the run."""
    path: str = ""
    """The path of that place on the site. The output is copied to PATH/RUN/NAME."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What is copied to the disk of the node before a run, and back after it."""

    inputs: list[StageInput] = []
    """Copied or unpacked before the command starts."""
    outputs: list[StageOutput] = []
    """Copied back after it has ended."""
    seconds: int = 0
    """How long before its time limit the command is stopped, to copy the outputs."""
    kill_wait: int = 0
    """Seconds between SIGTERM and SIGKILL when its job is stopped; 0 without a scheduler."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """One context where a run is or may be executed."""

    context: str
    context_type: str
    folder: str
    """The run folder on the context."""
    resources: Resources
    job: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The request for a run; the content of run.json."""

    id: str
    context: str
    context_type: str
    """local, slurm or kubernetes."""
    project: str
    source: str
    """The project folder on the machine that created the run."""
    created: float
    command: list[str]
    """As typed; bytes that are not text are written as \\xNN."""
    folder: str
    """The run folder on the context."""
    purpose: Purpose = "run"
    name: str = ""
    params: dict[str, Any] = {}
    tags: list[str] = []
    note: str = ""
    subfolder: str = ""
    """The working directory of the command, relative to the project folder."""
    resources: Resources = Resources()
    code: Code = Code()
    restart_policy: RestartPolicy = RestartPolicy()
    tasks: int = 0
    """The number of tasks of a sweep; 0 for a single run."""
    sweep: str = ""
    """For a task: its sweep."""
    task: int | None = None
    """For a task: its number in the sweep."""
    after: list[After] = []
    """Runs that it depends on."""
    retry_of: str = ""
    """The original run, if `retry` created this one."""
    retried: str = ""
    """The retried tasks of the original sweep, as ranges, if not all."""
    settings: list[Chosen] = []
    secrets: list[str] = []
    """Names of secret variables; their values are passed separately and not recorded."""
    env: RunEnv | None = None
    """The environment that yurt built for it."""
    stage: Stage | None = None
    """What it has on the disk of its node."""
    home_sync: bool = False
    """Whether its first start waits for a home sync that begins after its submission."""
    race: str = ""
    """The race whose candidate it is; its own id if it is the race."""
    user: str = ""
    host: str = ""
    yurt_version: str = ""

    def unsynced(self) -> "Run":
        """Return the run for a later start, which does not wait for a home sync again."""
        return msgspec.structs.replace(self, home_sync=False) if self.home_sync else self


CANCEL_NOT_SENT = "you cancelled it, but its site has not confirmed that yet"
"""Why an unfinished run with a request to cancel it is not cancelled yet."""


class RunRef(msgspec.Struct, frozen=True):
    """What a query of a run needs: its id, its folder and its last state."""

    id: str
    folder: str
    created: float
    mark: str = ""
    """The row of its job in the queue at the last query; empty if it was not conclusive. For a sweep: a checksum of its
    status if the last query changed nothing about it."""
    open: str = ""
    """For a sweep: the unfinished tasks, as ranges."""
    begun: str = ""
    """The unfinished tasks that have started, as ranges."""
    offsets: str = "0"
    """The offsets of its job arrays."""
    held: str = ""
    """Why all its pending tasks were held at the last query."""
    ended: bool = False
    """Whether its exit code is known, so that only its jobs in the queue matter."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a run as recorded on this machine."""

    state: State = "waiting"
    reason: str = ""
    """Why the run is in this state, as text."""
    native: str = ""
    """The scheduler's state and reason."""
    job: str = ""
    node: str = ""
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    restarts: int = 0
    seconds: float | None = None
    """Total running time of all starts, in seconds; null until it has finished."""
    result_bytes: int | None = None
    """Disk space of its outputs, its checkpoints and its working directory at its end; null if that is unknown."""
    result_files: int | None = None
    """Number of files in them."""
    usage: Usage | None = None
    """What it used of its resources; null if that is unknown."""
    cause: str = ""
    """Why it failed, in the words of `yurt why`, if they say more than `reason`. Each machine finds it in the logs."""
    start: int = 1
    """The number of the next start, if one is pending."""
    retries: int = 0
    """Number of times it was submitted again because the site failed before it started."""
    seen_at: float | None = None
    """When the site last reported news of it."""
    confirmed: bool = False
    """Whether the queue listed it long enough after submission that a controller crash cannot lose it."""
    missing_since: float | None = None
    """Since when the scheduler no longer lists the job."""
    listed_at: float | None = None
    """When the scheduler last listed the job; set when it no longer does."""
    attempts: int = 0
    """Number of times it was, or may have been, submitted."""
    unsure_since: float | None = None
    """When a submission began that may have succeeded although no answer came; null if there is none."""
    cancel_requested: bool = False
    """Whether the user cancelled it and the request has not reached the site yet."""
    building: bool = False
    """Whether its job is held until its environment is built."""
    metrics: dict[str, Any] = {}
    """For a task: the last metrics it logged."""
    task_states: dict[str, int] = {}
    """For a sweep: the number of tasks in each state."""
    submitted_tasks: str = ""
    """For a sweep: the submitted tasks, as ranges."""
    offsets: list[str] = []
    """For a sweep: the offsets of its job arrays."""
    held: str = ""
    """For a sweep: why the scheduler holds all its pending tasks; empty if it does not."""
    other_machine: bool = False
    """For a sweep: whether another machine submits it; this machine then only resubmits tasks."""

    @property
    def final(self) -> bool:
        return self.state in FINAL

    @property
    def why(self) -> str:
        """What tables show: a cancellation that is not sent yet, else the cause of a failure, else the reason."""
        if self.cancel_requested and self.state not in FINAL:
            return CANCEL_NOT_SENT
        failed = self.state in FINAL and self.state not in ("completed", "cancelled")
        return self.cause if failed and self.cause else self.reason


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How the environment of a command is set up, in this order."""

    profile: int = 0
    """Seconds that the profile of the user's login shell may take; 0: the job does not read it."""
    modules: list[str] = []
    modules_init: str = ""
    after_modules: str = ""
    env: str = ""
    """The folder of an environment that yurt built."""
    unpack: bool = False
    """Whether that environment is unpacked onto the disk of each node."""
    venv: str = ""
    conda: str = ""
    container: str = ""
    pyxis: str = ""
    """The image as Pyxis names it, if srun starts the container; else Apptainer or Singularity does."""
    offline: bool = False
    """Whether compute nodes are known to have no internet, so that W&B writes to the run folder only."""


class Holder(msgspec.Struct, frozen=True):
    """A job that runs no command of its own, but keeps its resources for sessions: `yurt shell`."""

    first: int
    """Seconds after its start within which a session must begin."""
    again: int
    """Seconds after a lost session within which another one must begin."""


class Race(msgspec.Struct, frozen=True, kw_only=True):
    """The race of a candidate, as its job needs it."""

    id: str
    arbiter: str
    """The context with the folder of claims."""
    folder: str
    """That folder."""
    here: bool = False
    """Whether the job reaches the folder itself."""
    ssh: list[str] = []
    """The ssh command with which the job reaches the arbiter; empty if it has none."""
    keys: list[tuple[str, str]] = []
    """Of the race itself: the contexts with a key for that, and its folder there."""
    wait: int = 0
    """Seconds that a job waits for an answer before it gives its node back."""
    carrier: list[str] = []
    """A command of this machine that carries claims."""
    first: int = 0
    """For a sweep: the item of its first task."""
    step: int = 1
    """For a sweep: how many items later that of the next task is; -1: one earlier."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is needed to submit a run. Its files are generated from it, and `retry` reuses it."""

    run: Run
    project_folder: str
    """The project folder on the context."""
    store: str
    """The local git folder that contains the snapshot."""
    imported: bool = False
    """Whether it is from the records of a site, which may name any secret of this machine."""
    words: list[bytes]
    """The command."""
    variables: dict[str, bytes] = {}
    setup: Setup = Setup()
    packages: dict[str, str] = {}
    """The versions of the packages of the environment that yurt builds for it, by name, as far as they are known."""
    native_options: dict[str, str | None] = {}
    """Options of the context's scheduler."""
    native_lines: list[str] = []
    """Directives for that scheduler in the user's script."""
    use_srun: bool = False
    """Whether srun starts the command, once for each Slurm task."""
    limit: int | None = None
    """Time limit in seconds."""
    lease: int = 60
    """Seconds within which a restartable start must renew its heartbeat."""
    grace: int = 10
    """Seconds between SIGTERM and SIGKILL if no scheduler enforces it."""
    place: str = ""
    """A folder to start in, instead of a copy of the code."""
    copy: bool = False
    writable: list[str] = []
    """Folders of the code that are real folders in the working directory, with all folders below them."""
    sets: list[dict[str, Any]] = []
    """The parameters of each task of a sweep, in addition to those of the run."""
    arguments: bool = True
    """Whether the parameters of a task are also passed as arguments."""
    array: str = ""
    """The indices of `#SBATCH --array` if the tasks are those of an array of the user's script, such as 0-9."""
    logs: dict[str, str] = {}
    """Names of log files in the working directory, by option of sbatch (output, error); with patterns such as %j."""
    mrunner: bool = False
    """Whether the parameters of a task are passed as mrunner passes them: `--config` and a file."""
    parallel: int | None = None
    """The maximum number of concurrent tasks."""
    follow: bool = False
    """Whether its next start is a new job, because the site does not requeue jobs."""
    sources: list[str] = []
    """Folders of the project to import from, because its environment lacks the packages in them."""
    calls: bool = False
    """Whether its tasks are function calls, which are uploaded in a separate file."""
    calls_per_process: int = 0
    """How many calls one process on this machine makes at most; 0: no limit."""
    holder: Holder | None = None
    """If its job only keeps the resources for sessions."""
    race: Race | None = None
    """If it is a candidate of a race."""

    def later(self) -> "Plan":
        """Return the plan for a later start, which is not held again."""
        options = {name: each for name, each in self.native_options.items() if name != "hold"}
        return msgspec.structs.replace(self, native_options=options, run=self.run.unsynced())
