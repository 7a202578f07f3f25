"""The rows of the settings table about dev nodes and their workspaces. Pure and cheap to import."""

from __future__ import annotations

from yurt.model.settings_row import Row

DEV = (
    Row(
        cli="--workspace NAME",
        key="dev_workspace",
        example="work",
        help="Workspace: a folder below the node's scratch folder, or an absolute path.",
        about="Workspace of a dev node: the name of a folder below the node's scratch folder for you, or an absolute"
        " path. Default: work, or work-NAME for the dev node NAME.",
    ),
    Row(
        cli="--interval TIME",
        key="dev_interval",
        form="seconds",
        example="30m",
        help="Time between two backups (default: 30m).",
        about="Time between two backups of a workspace; a number without a unit is in minutes. Default: 30m.",
    ),
    Row(
        cli="--compression METHOD",
        key="dev_compression",
        form="choice",
        choices=("auto", "zstd", "lz4", "gzip"),
        example="zstd",
        help="Compression of backups: zstd, lz4, gzip, or auto for the best that the node has (default).",
        about="Compression of the backups of a workspace: zstd, lz4, gzip, or auto for the best that the node has."
        " Default: auto.",
    ),
    Row(
        cli="--tier TIER",
        key="dev_tier",
        example="project",
        help="Where backups are kept: home, scratch, project, or an absolute folder on the site.",
        about="Where the backups of workspaces are kept: home, scratch or project (storage areas of the site), or an"
        " absolute folder on the site. Default: yurt's folder on the site, see `storage_dir`.",
    ),
    Row(
        key="dev_keep",
        form="mapping",
        example="{last: 10, days: 7, weeks: 4}",
        about="Which versions of a workspace are kept: the last ones, the last one of each day, and the last one of"
        " each week. Default: {last: 10, days: 7, weeks: 4}.",
    ),
    Row(
        key="dev_limit",
        form="size",
        unit="MB",
        example="200G",
        about="Size of the backups of a workspace above which older versions are removed; the newest one is always"
        " kept. Default: no limit.",
    ),
    Row(
        key="dev_idle",
        form="seconds",
        example="2h",
        about="Time without use of CPU, GPU or terminals after which `yurt dev status` says that a dev node is idle; a"
        " number without a unit is in minutes. Default: 2h.",
    ),
    Row(
        key="dev_idle_release",
        form="flag",
        example="false",
        about="Whether an idle dev node makes a last backup and ends. Default: false.",
    ),
    Row(
        key="dev_sshd",
        form="flag",
        site=True,
        example="true",
        about="Whether `ssh yurt-dev` may start an sshd of your own inside the job, where nodes accept no ssh; some"
        " sites forbid that. Default: false.",
        effect="lets ssh into your jobs through an sshd that yurt starts in them",
    ),
)
