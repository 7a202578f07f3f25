"""The settings table: one row for each option of a run and each key of a context. Pure and cheap to import.

The options of `yurt run`, the keys of contexts.yaml and yurt.yaml, the sbatch arguments and the reference are
generated from it. `Options` of the Python API, `Context` and `Resources` are written by hand, for editors and type
checkers; a test compares them with the table.
"""

from __future__ import annotations

from yurt.model.settings_dev import DEV
from yurt.model.settings_race import RACE
from yurt.model.settings_row import Row
from yurt.model.settings_storage import OUTPUT, STORAGE

# An option that adds to the value of the context, such as --tag, has its own row next to the row of the key.

LABELS = (
    Row(option="name", cli="--name --job-name -J TEXT", help="Name of the run."),
    Row(option="tags", cli="--tag --tags TAG", form="list", help="Tag of the run; repeatable."),
    Row(option="note", cli="--note TEXT", help="Note about the run."),
)

RESOURCES = (
    Row(
        option="cpus",
        cli="--cpus --cpu --cpus-per-task -c N",
        key="resources.cpu",
        form="count",
        resource="cpus",
        sbatch="cpus-per-task",
        aliases=("cpu", "cpus"),
        example="4",
        help="CPU cores per Slurm task.",
        about="CPU cores per Slurm task.",
    ),
    Row(
        option="gpus",
        cli="--gpus --gpu --gpus-per-node N",
        key="resources.gpu",
        form="gpus",
        resource="gpus",
        sbatch="gres",
        aliases=("gpu", "gpus"),
        example="a100:2",
        help="GPUs per node, with an optional type: 2, a100:2.",
        about="GPUs per node, with an optional type: 2, a100:2.",
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
        help="Memory per node: 4096 (MB), 8G.",
        about="Memory per node; a number without a unit is in MB.",
    ),
    Row(
        option="mem_per_cpu",
        cli="--mem-per-cpu SIZE",
        form="size",
        unit="MB",
        sbatch="mem-per-cpu",
        scheduler=True,
        example="2G",
        help="Memory per core, instead of --mem.",
    ),
    Row(
        option="gres",
        cli="--gres LIST",
        form="gres",
        scheduler=True,
        example="gpu:a100:2",
        help="Generic resources per node, instead of --gpus: gpu:a100:2,lustre:1.",
    ),
    Row(
        option="time",
        cli="--time -t TIME",
        key="time",
        form="time",
        unit="minutes",
        resource="minutes",
        sbatch="time",
        example="2h",
        help="Time limit: 90m, 2h, 1-12:00:00.",
        about="Time limit of a run; a number without a unit is in minutes.",
    ),
    Row(
        option="nodes",
        cli="--nodes -N N",
        key="nodes",
        form="range",
        resource="nodes",
        sbatch="nodes",
        scheduler=True,
        example="2",
        help="Number of nodes; with more than 1, srun starts the command.",
        about="Number of nodes: 2, or 2-4; with more than 1, srun starts the command.",
    ),
    Row(
        option="ntasks",
        cli="--ntasks -n N",
        key="ntasks",
        form="count",
        resource="ntasks",
        sbatch="ntasks",
        scheduler=True,
        example="4",
        help="Number of Slurm tasks; with more than 1, srun starts the command.",
        about="Number of Slurm tasks; with more than 1, srun starts the command.",
    ),
    Row(
        option="ntasks_per_node",
        cli="--ntasks-per-node N",
        form="count",
        sbatch="ntasks-per-node",
        scheduler=True,
        example="4",
        help="Number of Slurm tasks on each node; with more than 1, srun starts the command.",
    ),
    Row(
        option="partition",
        cli="--partition -p NAME",
        key="partition",
        resource="partition",
        sbatch="partition",
        scheduler=True,
        example="main",
        help="Partition to submit to.",
        about="Partition that runs are submitted to.",
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
        about="Account that runs are charged to.",
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
        about="Quality of service for runs.",
    ),
    Row(
        option="constraint",
        cli="--constraint TEXT",
        sbatch="constraint",
        scheduler=True,
        help="Node features that the run requires.",
    ),
    Row(
        option="nodelist",
        cli="--nodelist -w NODES",
        key="nodelist",
        resource="nodelist",
        sbatch="nodelist",
        scheduler=True,
        example="n[1-4]",
        help="Nodes that the run must use.",
        about="Nodes that a run must use.",
    ),
    Row(
        option="exclude_nodes",
        cli="--exclude-node -x NODES",
        key="exclude_nodes",
        resource="exclude_nodes",
        sbatch="exclude",
        scheduler=True,
        example="n7",
        help="Nodes that the run must not use.",
        about="Nodes that a run must not use.",
    ),
    Row(
        option="sbatch",
        cli="--sbatch-option KEY=VALUE",
        key="sbatch_options",
        form="options",
        scheduler=True,
        example="{constraint: a100, exclusive: null}",
        help="Any other sbatch option; repeatable.",
        about="Other sbatch options; null for an option without a value.",
        effect="passed to sbatch on the site",
    ),
)

ENVIRONMENT = (
    Row(
        option="modules",
        cli="--module NAME",
        key="modules_to_load",
        form="list",
        example="[python/3.11, cuda/12.1]",
        help="Environment module to load; repeatable.",
        about="Environment modules that a run loads first.",
        effect="loaded in every job",
    ),
    Row(
        option="venv",
        cli="--venv DIR",
        key="venv",
        example="~/venvs/torch",
        help="Virtual environment to activate.",
        about="Virtual environment that a run activates.",
        effect="activated in every job",
    ),
    Row(
        option="conda",
        cli="--conda NAME",
        key="conda",
        example="torch",
        help="Conda environment to activate.",
        about="Conda environment that a run activates.",
        effect="activated in every job",
    ),
    Row(
        option="env",
        cli="--env FILE",
        key="env",
        example="environment.yml",
        help="File that declares the packages of the run, or `none`; by default the one that the project has.",
        about="File that declares the packages of a run: uv.lock, pyproject.toml, requirements.txt or environment.yml;"
        " `none` for no environment of yurt. By default the project's own. A mapping is read as `variables`.",
        effect="its packages are installed on the cluster",
    ),
    Row(
        option="env_python",
        cli="--env-python VERSION",
        key="env_python",
        example='"3.11"',
        help="Version of Python for the environment that yurt builds.",
        about="Version of Python for the environment that yurt builds.",
    ),
    Row(
        option="env_place",
        cli="--env-place PLACE",
        key="env_place",
        form="choice",
        choices=("scratch", "home", "tmpdir"),
        example="tmpdir",
        help="Where the environment that yurt builds is kept: scratch, home, or tmpdir for the disk of each node.",
        about="Where the environment that yurt builds is kept: scratch (yurt's folder on the site), home, or tmpdir"
        " (in scratch; each job unpacks it into $SLURM_TMPDIR, once per node). Default: scratch.",
    ),
    Row(
        option="requirements",
        cli="--requirements --requirements_file FILE",
        key="requirements_file",
        example="requirements.txt",
        help="File of Python requirements for the environment that yurt builds; as --env.",
        about="File of Python requirements for the environment that yurt builds; as `env`.",
        effect="its packages are installed on the cluster",
    ),
    Row(
        option="container",
        cli="--container IMAGE",
        key="container",
        aliases=("singularity", "singularity_container"),
        example="/images/torch.sif",
        help="Container image to run in.",
        about="Container image that a run uses.",
        effect="every job runs in it",
    ),
    Row(
        option="variables",
        cli="--var KEY=VALUE",
        key="variables",
        form="mapping",
        example='{OMP_NUM_THREADS: "4"}',
        help="Set an environment variable for the run; repeatable.",
        about="Environment variables for a run.",
        effect="set in every job; can change which programs run",
    ),
    Row(
        option="secrets",
        cli="--secret NAME",
        form="list",
        help="Pass NAME to the run as a secret, from the environment or the keyring; repeatable.",
    ),
)

FILES = (
    Row(
        option="include",
        cli="--include GLOB",
        form="list",
        help="Include matching files in the snapshot even if they are ignored; repeatable.",
    ),
    Row(
        option="exclude",
        cli="--exclude GLOB",
        form="list",
        help="Leave matching files out of the snapshot; repeatable.",
    ),
)

CODE = (
    Row(
        option="snapshot",
        cli="--no-snapshot",
        form="flag",
        help="Do not upload the code; on the context `local`, run in the project folder.",
    ),
)

HOMES = (
    Row(
        option="sync",
        cli="--sync/--no-sync",
        key="home_sync",
        form="flag",
        example="true",
        help="Sync your homes first: the job is held until a home sync that starts after its submission.",
        about="Whether each run, shell and dev node is held until a home sync that starts after its submission, as with"
        " `--sync`. Default: false.",
    ),
)

RESTARTS = (
    Row(
        option="requeue",
        cli="--requeue",
        form="flag",
        help="Restart the run when it reaches its time limit or is preempted.",
    ),
    Row(
        option="max_requeues",
        cli="--max-requeues N",
        form="number",
        help="With --requeue, restart at most N times after the time limit (default: 10).",
    ),
    Row(
        option="signal_before",
        cli="--signal-before TIME",
        form="seconds",
        help="With --requeue, send SIGUSR1 to the run this long before its time limit: 90s, 5m.",
    ),
    Row(
        option="retries",
        cli="--retries N",
        form="number",
        least=0,
        help="Restart up to N times after a node or site failure.",
    ),
    Row(
        option="retry_errors",
        cli="--retry-errors",
        form="flag",
        help="With --retries, also restart when the command itself fails.",
    ),
)

SWEEP = (
    Row(
        option="max_parallel",
        cli="--max-parallel N",
        form="number",
        help="Run at most N tasks of a sweep at the same time.",
    ),
)

CONTEXT = (
    Row(
        key="name",
        aliases=("context_name",),
        example="big",
        about="Name of the context. Optional; must equal the key in the file.",
    ),
    Row(
        key="type",
        form="choice",
        site=True,
        choices=("local", "slurm", "kubernetes"),
        aliases=("backend_type",),
        example="slurm",
        about="Type of the site: local or slurm; kubernetes is not supported yet.",
    ),
    Row(
        key="slurm_url",
        site=True,
        example="alice@login.big.example",
        about="user@host of the login node, or a host alias from your ssh configuration.",
    ),
    Row(
        key="ssh_options",
        form="list",
        site=True,
        example='["-J", "gateway"]',
        about="Additional ssh arguments, such as -J with a gateway.",
        effect="passed to ssh on this machine; can run other programs and send data elsewhere",
    ),
    Row(
        key="ssh_command",
        form="list",
        site=True,
        example='["gcloud", "compute", "ssh"]',
        about="Command to run instead of ssh, such as gcloud compute ssh.",
        effect="runs on this machine instead of ssh",
    ),
    Row(
        key="storage_dir",
        site=True,
        aliases=("storage",),
        example="$HOME/runs",
        about="Folder for runs on the site; variables such as $HOME are expanded on the site.",
    ),
    Row(
        key="scratch_dir",
        site=True,
        aliases=("scratch_subdir",),
        example="yurt",
        about="Folder for short-lived data; a relative path is relative to $SCRATCH.",
    ),
    Row(
        key="env_cuda",
        example='"12.4"',
        about="CUDA version that the driver of the GPU nodes supports, by which yurt and conda choose packages; `cpu`:"
        " PyTorch without CUDA; `none`: as the package index has it. By default the version of the node of"
        " `yurt context probe --deep`, or of the login node, if they have a GPU.",
    ),
    Row(
        key="conda_installer",
        site=True,
        example="~/Downloads/Miniforge3-Linux-x86_64.sh",
        about="Address, or file on this machine, of an installer of conda such as that of Miniforge. yurt runs it on a"
        " cluster without conda when an environment needs conda.",
        effect="runs on the cluster if it has no conda",
    ),
    Row(key="user_id", site=True, example="alice", about="Your name in the records of runs."),
    Row(
        key="resources",
        form="group",
        example="{cpu: 4, gpu: 1, mem: 8G}",
        about="Resources of a run: cpu, gpu and mem.",
    ),
    Row(
        key="cmd_type",
        form="choice",
        choices=("sbatch", "srun"),
        example="sbatch",
        about="sbatch to submit runs, srun to submit and follow them.",
    ),
    Row(
        key="track",
        form="flag",
        aliases=("neptune",),
        example="true",
        about="Whether each run is sent to MLflow when it has finished: to `mlflow_uri`, or to the store of this"
        " machine that `yurt mlflow` shows. Default: false.",
    ),
    Row(
        key="mlflow_uri",
        site=True,
        example="https://mlflow.example",
        about="Your MLflow server, for `track` and for `yurt mlflow --to`. Its token is the secret"
        " MLFLOW_TRACKING_TOKEN.",
        effect="parameters and metrics of runs are sent there",
    ),
    Row(key="tags", form="list", example="[baseline, paper]", about="Tags that every run gets."),
    Row(
        key="login_profile",
        form="flag",
        site=True,
        example="false",
        about="Whether a job first reads the profile of your login shell, as a terminal on the cluster does"
        " (default: true).",
    ),
    Row(
        key="advice",
        form="flag",
        example="false",
        about="Whether `yurt run` advises to ask for less if earlier runs of the same command used much less than it"
        " asks for (default: true).",
    ),
    Row(
        key="wheelhouse",
        form="list",
        site=True,
        example="[/cvmfs/wheelhouse/avx2, /cvmfs/wheelhouse/generic]",
        about="Folders on the site with wheels that are preferred to those of package indexes, the best one first;"
        " `*` and variables such as $HOME are expanded on the site.",
        effect="packages are installed from there",
    ),
    Row(
        key="after_module_load_cmd",
        aliases=("prolog_cmd",),
        example="source ~/setup.sh",
        about="Shell command to run after the modules are loaded.",
        effect="runs in every job",
    ),
    Row(key="exclude", form="list", example="[data, .git]", about="Patterns of files to leave out of the snapshot."),
    Row(
        key="paths_to_copy",
        form="list",
        example="[../shared]",
        about="Additional files and folders to upload with the code.",
        effect="files of this machine that are uploaded with the code",
    ),
    Row(
        key="writable",
        form="list",
        example="[results, logs]",
        about="Folders of the project that a run writes to; in its working directory they are real folders.",
    ),
    Row(
        key="registry_url",
        site=True,
        example="registry.example/alice",
        about="Registry for container images (Kubernetes, which is not supported yet).",
    ),
    Row(
        key="profile",
        site=True,
        example="narval",
        about="Site profile of the cluster, from `yurt context profiles`: what its documentation says about purges,"
        " internet access and accounts.",
    ),
    Row(key="lab", site=True, example="default", about="Lab that created this context and can update or remove it."),
)

OPTIONS = (*LABELS, *RESOURCES, *ENVIRONMENT, *FILES, *CODE, *OUTPUT, *HOMES, *RESTARTS, *SWEEP)
TABLE: tuple[Row, ...] = (*OPTIONS, *CONTEXT, *DEV, *STORAGE, *RACE)
