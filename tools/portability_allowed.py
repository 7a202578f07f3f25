"""What tools/portability.py finds and may stay: each has a fall-back, which a test executes, or never runs on macOS."""

from __future__ import annotations

SLURM = "only in a job of Slurm"
TESTED = "tests/backends/test_without_gnu.py and tests/hosts/test_other_tools.py run its fall-back"

ALLOWED = {
    ("backends/job/ending.sh", "/proc"): SLURM,
    ("backends/job/ending.sh", "a program of Linux"): f"timeout: {SLURM}; without sha256sum, cmp compares each file",
    ("backends/job/ending.sh", "readlink -f"): "only to explain an error; macOS has it since 12.3",
    ("backends/job/env_state.sh", "a program of Linux"): "only for jobs of Slurm",
    ("backends/job/gate.sh", "mv -T"): TESTED,
    ("backends/job/gather.sh", "tar --null"): "the tar of macOS, bsdtar, has these options",
    ("backends/job/heartbeat.sh", "/proc"): "without it, the command is killed without a reason",
    ("backends/job/heartbeat.sh", "stat -c"): "only to record when an earlier start ran",
    ("backends/job/holder.sh", "/proc"): "elsewhere, ps tells when a process started",
    ("backends/job/main.sh", "/proc"): TESTED,
    ("backends/job/own.sh", "a program of Linux"): "without getent, a folder that a group can write to is refused",
    ("backends/job/profile.sh", "/proc"): "without it, the profile of the login shell is not read",
    ("backends/job/profile.sh", "a program of Linux"): "needs /proc, see there",
    ("backends/job/profile.sh", "printf %q"): "only in bash",
    ("backends/job/restart.sh", "a program of Linux"): SLURM,
    ("backends/job/signals.sh", "/proc"): TESTED,
    ("backends/job/signals.sh", "a program of Linux"): TESTED,
    ("backends/job/time_limit.sh", "a program of Linux"): SLURM,
    ("backends/job/workdir.sh", "cp -T or long options"): TESTED,
    ("backends/local/live.py", "/proc"): "elsewhere, the free memory is unknown",
    ("backends/local/waiter.py", "/proc"): TESTED,
    ("backends/local/waiter.py", "Linux call"): "os.cpu_count() where there is no affinity",
    ("backends/shell/doctor.sh", "a program of Linux"): "timeout: without it, there is no limit",
    ("backends/shell/receive.sh", "cp -T or long options"): "cp of BSD has -l",
    ("backends/shell/receive_large.sh", "a program of Linux"): "without sha256sum, only the size is checked",
    ("backends/shell/workspaces.py", "a program of Linux"): "without sha256sum, only the size is checked",
    ("config/text.py", "/proc"): "compares names only",
    ("doctor/site.py", "/proc"): "compares names only",
    ("homesync/gate.sh", "a program of Linux"): "only where squeue is",
    ("homesync/home_sync.sh", "date -d"): "elsewhere, date -r",
    ("homesync/look.sh", "a program of Linux"): "without sha256sum, shasum or cksum compares files",
    ("homesync/survey.sh", "a program of Linux"): "timeout: without it, there is no limit",
    ("hosts/tar.py", "find -printf"): TESTED,
    ("hosts/tar.py", "tar --null"): TESTED,
    ("node/backup/attributes.py", "Linux call"): "elsewhere, attributes of folders are not saved",
    ("node/backup/claims.py", "/proc"): "elsewhere, only the number of a process tells whether it runs",
    ("node/dev/control.py", "Linux constant"): "elsewhere, the folder of the socket keeps other users out",
    ("node/dev/idle.py", "/proc"): "without it, a dev node never counts as idle",
    ("node/metrics.py", "/proc"): "without it, each node writes its own file",
    ("node/dev/power.py", "/proc"): "elsewhere, a loss of power is not noticed",
}
