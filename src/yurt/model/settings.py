"""The table of settings: one row for each option of a run and each key of a context. Pure, and cheap to import.

The options of `yurt run`, the keys of contexts.yaml and yurt.yaml, the arguments of sbatch and the reference are made
from it. `Options` of the Python API, `Context` and `Resources` are written by hand, for editors and type checkers; a
test compares them with the table.
"""

from __future__ import annotations

from yurt.model.settings_row import Row

# An option that adds to what the context says, such as --tag, has a row apart from the key.

LABELS = (
    Row(option="name", cli="--name TEXT", help="What to call it; any text."),
    Row(option="tags", cli="--tag --tags TAG", form="list", help="A tag to find it by; may be repeated."),
    Row(option="note", cli="--note TEXT", help="A line about it, for yourself."),
)

RESOURCES = (
    Row(
        option="cpus",
        cli="--cpus --cpu N",
        key="resources.cpu",
        form="count",
        resource="cpus",
        sbatch="cpus-per-task",
        aliases=("cpu",),
        example="4",
        help="Cores.",
        about="Cores.",
    ),
    Row(
        option="gpus",
        cli="--gpus --gpu N",
        key="resources.gpu",
        form="gpus",
        resource="gpus",
        sbatch="gres",
        aliases=("gpu",),
        example="a100:2",
        help="GPUs, with a type where it matters: 2, a100:2.",
        about="GPUs, with a type where it matters: 2, a100:2.",
    ),
    Row(
        option="mem",
        cli="--mem SIZE",
        key="resources.mem",
        form="size",
        unit="MB",
        resource="memory_mb",
        sbatch="mem",
        aliases=("mem",),
        example="8G",
        help="Memory: 4096 (MB), 8G.",
        about="Memory; a bare number is MB.",
    ),
    Row(
        option="time",
        cli="--time TIME",
        key="time",
        form="time",
        unit="minutes",
        resource="minutes",
        sbatch="time",
        example="2h",
        help="Time limit: 90m, 2h, 1-12:00:00.",
        about="Time limit of a run; a bare number is minutes.",
    ),
    Row(
        option="nodes",
        cli="--nodes N",
        form="range",
        sbatch="nodes",
        scheduler=True,
        help="Nodes; with several, the command is started by srun.",
    ),
    Row(
        option="ntasks",
        cli="--ntasks N",
        key="ntasks",
        form="count",
        resource="ntasks",
        sbatch="ntasks",
        scheduler=True,
        example="4",
        help="Tasks; with several, the command is started by srun.",
        about="How many tasks a job starts.",
    ),
    Row(
        option="partition",
        cli="--partition -p NAME",
        key="partition",
        resource="partition",
        sbatch="partition",
        scheduler=True,
        example="main",
        help="Partition.",
        about="The partition jobs go to.",
    ),
    Row(
        option="account",
        cli="--account -A NAME",
        key="account",
        resource="account",
        sbatch="account",
        scheduler=True,
        example="lab42",
        help="Account to charge.",
        about="The account jobs are charged to.",
    ),
    Row(
        option="qos",
        cli="--qos NAME",
        key="qos",
        resource="qos",
        sbatch="qos",
        scheduler=True,
        example="normal",
        help="Quality of service.",
        about="The quality of service jobs ask for.",
    ),
    Row(
        option="constraint",
        cli="--constraint TEXT",
        sbatch="constraint",
        scheduler=True,
        help="Features a node must have.",
    ),
    Row(
        option="nodelist",
        cli="--nodelist -w NODES",
        key="nodelist",
        resource="nodelist",
        sbatch="nodelist",
        scheduler=True,
        example="n[1-4]",
        help="Nodes it must have.",
        about="Nodes a job must have.",
    ),
    Row(
        option="exclude_nodes",
        cli="--exclude-node NODES",
        key="exclude_nodes",
        resource="exclude_nodes",
        sbatch="exclude",
        scheduler=True,
        example="n7",
        help="Nodes it must not have.",
        about="Nodes a job must not have.",
    ),
    Row(
        option="sbatch",
        cli="--sbatch-option KEY=VALUE",
        key="sbatch_options",
        form="options",
        scheduler=True,
        example="{constraint: a100, exclusive: null}",
        help="Any option of sbatch.",
        about="Further options of sbatch; one without a value is null.",
    ),
)

ENVIRONMENT = (
    Row(
        option="modules",
        cli="--module NAME",
        key="modules_to_load",
        form="list",
        example="[python/3.11, cuda/12.1]",
        help="Environment module to load.",
        about="Environment modules a job loads first.",
    ),
    Row(
        option="venv",
        cli="--venv DIR",
        key="venv",
        example="~/venvs/torch",
        help="Virtual environment to activate.",
        about="Virtual environment a job activates.",
    ),
    Row(
        option="conda",
        cli="--conda NAME",
        key="conda",
        example="torch",
        help="Conda environment to activate.",
        about="Conda environment a job activates.",
    ),
    Row(
        option="container",
        cli="--container IMAGE",
        key="container",
        aliases=("singularity", "singularity_container"),
        example="/images/torch.sif",
        help="Container image to run in.",
        about="Container image a job runs in.",
    ),
    Row(
        option="variables",
        cli="--var KEY=VALUE",
        key="variables",
        form="mapping",
        example='{OMP_NUM_THREADS: "4"}',
        help="Environment variable of the run.",
        about="Environment variables of a job.",
    ),
    Row(
        option="secrets",
        cli="--secret NAME",
        form="list",
        help="Variable that only the run gets, from the environment or the keyring; may be repeated.",
    ),
)

FILES = (
    Row(option="include", cli="--include GLOB", form="list", help="Ignored files that shall travel all the same."),
    Row(option="exclude", cli="--exclude GLOB", form="list", help="Files that shall not travel."),
)

CODE = (
    Row(
        option="snapshot",
        cli="--no-snapshot",
        form="flag",
        help="Take no code along; on this machine, run in the folder itself.",
    ),
)

RESTARTS = (
    Row(
        option="requeue",
        cli="--requeue",
        form="flag",
        help="Start it again after its time limit, and when its node is taken away.",
    ),
    Row(option="max_requeues", cli="--max-requeues N", form="number", help="So often at most after its limit (10)."),
    Row(
        option="signal_before",
        cli="--signal-before TIME",
        form="seconds",
        help="When it is told to save, before its limit: 90s, 5m.",
    ),
    Row(option="retries", cli="--retries N", form="number", least=0, help="Again after a failure of the site's."),
    Row(
        option="retry_errors", cli="--retry-errors", form="flag", help="With --retries: also after an error of its own."
    ),
)

SWEEP = (Row(option="max_parallel", cli="--max-parallel N", form="number", help="So many tasks of a sweep at a time."),)

CONTEXT = (
    Row(
        key="name",
        aliases=("context_name",),
        example="big",
        about="What the context is called; the key in the file says it already.",
    ),
    Row(
        key="type",
        form="choice",
        site=True,
        choices=("local", "slurm", "kubernetes"),
        aliases=("backend_type",),
        example="slurm",
        about="What kind of place it is: local, slurm or kubernetes.",
    ),
    Row(
        key="slurm_url",
        site=True,
        example="alice@login.big.example",
        about="user@host of the login node, or an alias ssh knows.",
    ),
    Row(
        key="ssh_options",
        form="list",
        site=True,
        example='["-J", "gateway"]',
        about="Further arguments for ssh, such as -J with a gateway.",
    ),
    Row(
        key="ssh_command",
        form="list",
        site=True,
        example='["gcloud", "compute", "ssh"]',
        about="What to run instead of ssh, such as gcloud compute ssh.",
    ),
    Row(
        key="storage_dir",
        site=True,
        aliases=("storage",),
        example="$HOME/runs",
        about="Where yurt keeps runs; variables such as $HOME are resolved there.",
    ),
    Row(
        key="scratch_dir",
        site=True,
        aliases=("scratch_subdir",),
        example="yurt",
        about="Folder for short-lived data; a relative one is under $SCRATCH.",
    ),
    Row(key="user_id", site=True, example="alice", about="Who you are in the records of runs; any word of yours."),
    Row(
        key="resources",
        form="group",
        example="{cpu: 4, gpu: 1, mem: 8G}",
        about="What a run asks for: cpu, gpu and mem.",
    ),
    Row(
        key="cmd_type",
        form="choice",
        choices=("sbatch", "srun"),
        example="sbatch",
        about="sbatch to queue runs, srun to stay with them.",
    ),
    Row(key="track", form="flag", site=True, aliases=("neptune",), example="true", about="Whether runs are tracked."),
    Row(key="tags", form="list", example="[baseline, paper]", about="Tags every run gets."),
    Row(
        key="after_module_load_cmd",
        example="source ~/setup.sh",
        about="Shell line a job runs after its modules are loaded.",
    ),
    Row(key="env", example="environment.yml", about="Environment yurt builds: its name or the file that defines it."),
    Row(key="requirements_file", example="requirements.txt", about="Python requirements the environment must hold."),
    Row(key="exclude", form="list", example="[data, .git]", about="Patterns of files that do not travel."),
    Row(
        key="paths_to_copy",
        form="list",
        example="[../shared]",
        about="Further files and folders that travel with the code.",
    ),
    Row(
        key="registry_url",
        site=True,
        example="registry.example/alice",
        about="Registry that images are published to (Kubernetes).",
    ),
    Row(key="lab", site=True, example="default", about="The lab that made this context, and may renew or remove it."),
)

TABLE: tuple[Row, ...] = (*LABELS, *RESOURCES, *ENVIRONMENT, *FILES, *CODE, *RESTARTS, *SWEEP, *CONTEXT)
