"""The sampler in jobs: what it records of real processes, and over days of a clock that a test turns."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from yurt.backends import scripts
from yurt.model.usage_samples import samples, usage
from yurt.testing.waiting import eventually

PRELUDE = """\
newline='
'
kind=slurm gpus=
"""

SLEEP = """\
#!/bin/sh
read -r now _idle < "$FAKE/uptime"
now=${now%.*}
echo "$((now + 300)).00 0.00" > "$FAKE/uptime"
[ "$now" -lt "$UNTIL" ] || rm -rf "$FAKE/7"
[ "$now" -lt "$((UNTIL / 2))" ] || sed -i 's/500000/900000/' "$FAKE/42/status"
"""
"""Instead of `sleep`: five minutes pass; memory rises in the second half."""

STAT = "{0} (a) b) S {1} {0} {2} 0 -1 0 0 0 0 0 {3} 50 0 0 20 0 1 0 99 0 0\n"
STATUS = "Name:\tx\nVmHWM:\t{0} kB\nVmRSS:\t{0} kB\nRssAnon:\t500000 kB\nRssFile:\t0 kB\nRssShmem:\t24000 kB\n"

LEAST, MOST = (-(-(each + 500_000 + 24_000) // 1024) for each in (500_000, 900_000))
"""Memory of both processes in MB: shared memory counts once."""

AWKS = [each for each in ("gawk", "mawk", "busybox") if shutil.which(each)]


class Machine:
    """A folder instead of /proc, with a job, 7, its command, 42, and a process of a step of srun, 51."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work, self.bin = folder / "proc", folder / "run", folder / "bin"
        for each in (self.folder, self.work, self.bin):
            each.mkdir()
        (self.folder / "uptime").write_text("1000.00 0.00\n")
        for pid, parent, session, ticks in ((7, 1, 7, 0), (42, 7, 42, 1000), (50, 1, 50, 0), (51, 50, 51, 300)):
            self.process(pid, parent, session, ticks)
        (self.folder / "50" / "stat").write_text(STAT.format(50, 1, 50, 0).replace("a) b", "slurmstepd"))
        (self.folder / "50" / "cmdline").write_text("slurmstepd: [12.0]\0")
        self.process(60, 1, 60, 9999)  # of another user
        self.process(99, 7, 99, 1)
        (self.folder / "self").symlink_to("99")
        (self.folder / "99" / "cgroup").write_text("0::/slurmstepd.scope/job_12/step_batch\n")
        self.tool("sleep", SLEEP)

    def process(self, pid: int, parent: int, session: int, ticks: int) -> None:
        (self.folder / str(pid)).mkdir()
        (self.folder / str(pid) / "stat").write_text(STAT.format(pid, parent, session, ticks))
        (self.folder / str(pid) / "status").write_text(STATUS.format(524000))

    def tool(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o700)

    def run(self, *, seconds: int, then: str = "sample 1 42 7 99", **variables: str) -> str:
        """Run the sampler until the job ends, after so many seconds of its clock; return what it prints."""
        start = f"proc={self.folder} cgroups={self.folder}/groups nap=9999\n"
        script = PRELUDE + scripts.text("sampler.sh", "job") + start + then
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "FAKE": str(self.folder),
            "UNTIL": str(1000 + seconds),
        }
        environment |= {"SLURM_JOB_ID": "12", "SLURM_CPUS_ON_NODE": "4", "SLURM_MEM_PER_NODE": "2048", **variables}
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=self.work,
            env=environment,
            check=True,
            timeout=120,
            capture_output=True,
            text=True,
        )
        assert done.stderr == "", done
        return done.stdout

    @property
    def text(self) -> bytes:
        return (self.work / "usage").read_bytes()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("awk", AWKS)
def test_processes_and_steps(machine: Machine, awk: str) -> None:
    machine.tool("awk", f'#!/bin/sh\nexec {awk} {"awk " * (awk == "busybox")}"$@"\n')
    machine.run(seconds=3000)
    found = usage(machine.text)
    assert found is not None and machine.text.startswith(b"= 1 1 4 2048\n")
    assert found.cpu_seconds == (1050 + 350 + 50) / 100  # the command, a process of the step, and slurmstepd
    assert found.memory_mb == MOST  # shared memory once
    assert samples(machine.text)[0].memory == LEAST
    assert [path.name for path in machine.work.iterdir()] == ["usage"]


def test_many_samples_stay_a_small_file(machine: Machine) -> None:
    machine.run(seconds=410 * 300)
    found = samples(machine.text)
    assert 200 < len(found) <= 400
    assert found[-1].peak == max(each.memory for each in found) == MOST
    times = [each.seconds for each in found]
    assert times == sorted(times) and times[0] < 1000 and times[-1] > 400 * 300


def test_a_later_start_keeps_earlier_samples(machine: Machine) -> None:
    before = "= 1 2 4 -\n" + "".join(f"1 {each}.0 {each}.50 0.00 50 5000 - -\n" for each in range(1, 350))
    (machine.work / "usage").write_text(before)
    machine.run(seconds=80 * 300, then="sample 2 42 7 99")
    found = samples(machine.text)
    assert {each.start for each in found} == {1, 2} and len(found) < 400 and found[0].start == 1
    total = usage(machine.text)
    assert total is not None and total.memory_mb == 5000 and total.cpu_seconds == 349.5 + 14.5


VERSION_1 = {
    "memory": {
        "memory.stat": "cache 1\nrss 2\nshmem 3\ntotal_cache 1048576\ntotal_rss 104857600\ntotal_shmem 1048576\n",
        "memory.max_usage_in_bytes": f"{700 << 20}\n",
    },
    "cpuacct": {"cpuacct.usage": "5000000000\n"},
}
VERSION_2 = {
    "": {
        "cpu.stat": "usage_usec 5000000\nuser_usec 4000000\nsystem_usec 1000000\n",
        "memory.stat": "anon 104857600\nfile 1048576\nkernel 3\nshmem 1048576\nfile_mapped 4\n",
        "memory.peak": f"{700 << 20}\n",
    }
}
"""Files of control groups as the kernel writes them: 100 MB of anonymous memory, 1 MB shared, 700 MB at most."""

LINES_1 = """\
11:cpu,cpuacct:/slurm/uid_1000/job_12/step_batch
9:memory:/slurm/uid_1000/job_12/step_batch/task_0
4:freezer:/slurm/uid_1000/job_12/step_batch
1:name=systemd:/system.slice/slurmd.service
0::/system.slice/slurmd.service
"""
LINES_2 = "0::/system.slice/slurmstepd.scope/job_12/step_batch/user/task_0\n"


def control_group(machine: Machine, version: int) -> None:
    (machine.folder / "99" / "cgroup").write_text(LINES_1 if version == 1 else LINES_2)
    at = "slurm/uid_1000/job_12" if version == 1 else "system.slice/slurmstepd.scope/job_12"
    for controller, files in (VERSION_1 if version == 1 else VERSION_2).items():
        group = machine.folder / "groups" / controller / at
        group.mkdir(parents=True)
        for name, text in files.items():
            (group / name).write_text(text)


@pytest.mark.parametrize("version", [1, 2])
def test_control_group_of_the_job(machine: Machine, version: int) -> None:
    """What the control group counts is a bound for the sum of processes, in which forks share memory."""
    control_group(machine, version)
    machine.run(seconds=900)
    found = usage(machine.text)
    assert found is not None and found.memory_mb == 700


@pytest.mark.parametrize("version", [1, 2])
def test_control_group_of_another_job(machine: Machine, version: int) -> None:
    control_group(machine, version)
    machine.run(seconds=900, SLURM_JOB_ID="1")
    found = usage(machine.text)
    assert found is not None and found.memory_mb is not None and found.memory_mb > 700


END = """\
mkdir -p "$proc/$$" && echo "$$ (sh) S 1 1 1 0 -1 0 0 0 0 0 0 0 {ticks} 0 20 0 1 0 99 0 0" > "$proc/$$/stat"
k={k} spent_before='0 1000.00' cause={cause} largest={largest}
echo "{end:.2f} 0.00" > "$proc/uptime"
used
"""


def at_end(
    machine: Machine, samples: str, *, end: float, k: int = 1, ticks: int = 0, cause: str = "", largest: int = 0
) -> dict[str, float]:
    """Return what exit.json says of a start that took so many seconds, after these samples."""
    (machine.work / "usage").write_text("= 1 1 4 400\n" + samples)
    out = machine.run(seconds=0, then=END.format(k=k, ticks=ticks, cause=cause, largest=largest or "", end=1000 + end))
    field = out.splitlines()[1]
    found: dict[str, float] = json.loads("{" + field[1:] + "}")["usage"]
    return found


FIRST = "1 0.1 0.05 0.00 5 5 - -\n"
RISING = "1 0.9 0.20 0.00 100 100 - -\n"
SETTLED = "1 1.2 0.20 0.00 90 101 - -\n"


def test_a_peak_that_samples_missed_is_unknown(machine: Machine) -> None:
    assert "memory_mb" not in at_end(machine, "", end=0.1)
    assert "memory_mb" not in at_end(machine, FIRST, end=0.4)
    assert "memory_mb" not in at_end(machine, FIRST + RISING, end=1.3)
    assert at_end(machine, FIRST + RISING + SETTLED, end=1.3)["memory_mb"] == 101
    assert "memory_mb" not in at_end(machine, FIRST + RISING + SETTLED, end=60)  # the sampler was killed


def test_the_largest_process(machine: Machine) -> None:
    """What the kernel kept of it, in KB, counts if the peak of all is unknown, unless samples of several saw more."""
    found = at_end(machine, "", end=0.05, ticks=4, largest=100 << 10)
    assert found == {
        "seconds": 0.05,
        "cpu_seconds": 0.04,
        "memory_mb": 100,
        "largest_process": True,
        "nodes": 1,
        "cpus": 4,
        "memory_limit_mb": 400,
    }
    assert at_end(machine, FIRST + RISING, end=1.3, largest=(150 << 10) - 1)["memory_mb"] == 150
    several = at_end(machine, FIRST + RISING, end=1.3, largest=50 << 10)
    assert "memory_mb" not in several and "largest_process" not in several
    known = at_end(machine, FIRST + RISING + SETTLED, end=1.3, largest=150 << 10)
    assert known["memory_mb"] == 101 and "largest_process" not in known


def test_a_job_without_samples_has_its_limits(machine: Machine) -> None:
    """It ended before the sampler began."""
    out = machine.run(seconds=0, then=END.format(k=1, ticks=4, cause="", largest="", end=1000.05))
    assert json.loads("{" + out.splitlines()[1][1:] + "}")["usage"] == {
        "seconds": 0.05,
        "cpu_seconds": 0.04,
        "nodes": 1,
        "cpus": 4,
        "memory_limit_mb": 2048,
    }
    each = {"SLURM_MEM_PER_CPU": "100", "SLURM_MEM_PER_NODE": ""}
    out = machine.run(seconds=0, then=END.format(k=1, ticks=4, cause="", largest="", end=1000.05), **each)
    assert '"memory_limit_mb":400}' in out


def test_a_peak_of_two_starts(machine: Machine) -> None:
    first = FIRST + RISING + SETTLED
    assert at_end(machine, first + "2 0.1 0.05 0.00 5 5 - -\n", k=2, end=0.3)["memory_mb"] == 101
    assert "memory_mb" not in at_end(machine, first + "2 0.1 0.05 0.00 300 300 - -\n", k=2, end=0.3)
    short = "1 0.4 0.30 0.00 5 0 - -\n"
    later = at_end(machine, FIRST + short + RISING.replace("1", "2", 1) + SETTLED.replace("1", "2", 1), k=2, end=2)
    assert (later["memory_mb"], later["seconds"]) == (101, 2.4)


def test_a_job_that_was_killed() -> None:
    """There is no end in its samples."""
    for text, ended, want in (
        (FIRST + RISING, True, None),
        (FIRST + RISING, False, 100),
        (FIRST + RISING + SETTLED, True, 101),
        (FIRST + RISING + SETTLED + "2 0.1 0.05 0.00 5 300 - -\n", True, None),
    ):
        assert usage(text.encode(), ended=ended).memory_mb == want  # type: ignore[union-attr]


def test_the_peak_of_a_job_out_of_memory(machine: Machine) -> None:
    """Memory that grows too fast for samples is not recorded as little, unless the control group knows it."""
    slow = "1 0.1 0.05 0.00 5 5 - -\n1 0.8 0.05 0.00 {0} {0} - -\n1 1.4 0.05 0.00 {0} {0} - -\n"
    assert at_end(machine, slow.format(390), end=1.5, cause="out_of_memory")["memory_mb"] == 390
    assert "memory_mb" not in at_end(machine, slow.format(5), end=1.5, cause="out_of_memory")
    control_group(machine, 2)
    assert at_end(machine, slow.format(5), end=1.5, cause="out_of_memory")["memory_mb"] == 700
    assert at_end(machine, "", end=0.2)["memory_mb"] == 700


def test_the_cpu_time_of_steps_after_the_last_sample(machine: Machine) -> None:
    steps = "1 10.0 20.00 20.00 50 50 - -\n1 20.0 40.00 40.00 50 50 - -\n"
    assert at_end(machine, steps, end=22)["cpu_seconds"] == 44
    assert at_end(machine, steps, end=22, ticks=100)["cpu_seconds"] == 45
    assert at_end(machine, steps, end=9000)["cpu_seconds"] == 80  # the sampler was killed
    burst = "1 10.0 0.00 0.00 50 50 - -\n1 10.1 9.00 9.00 50 50 - -\n"
    assert at_end(machine, burst, end=11.1)["cpu_seconds"] == 13  # no more than its 4 CPUs


def test_gpus(machine: Machine) -> None:
    machine.tool("nvidia-smi", '#!/bin/sh\necho "$*" >> smi.log\nprintf "30, 1000\\n50, 3000\\n[N/A], [N/A]\\n"\n')
    machine.run(seconds=1500, CUDA_VISIBLE_DEVICES="0,2")
    found = usage(machine.text)
    assert found is not None and (found.gpu_percent, found.gpu_memory_mb) == (40, 3000)
    words = (machine.work / "smi.log").read_text().splitlines()[0]
    assert words == "--query-gpu=utilization.gpu,memory.used --format=csv,noheader,nounits -i 0,2"


def test_no_gpus(machine: Machine) -> None:
    machine.tool("nvidia-smi", "#!/bin/sh\ntouch smi.log\nexit 9\n")
    machine.run(seconds=900)
    assert not (machine.work / "smi.log").exists()  # the job has none
    machine.run(seconds=9000, CUDA_VISIBLE_DEVICES="0", then="sample 2 42 7 99")
    assert usage(machine.text).gpu_percent is None  # type: ignore[union-attr] # it fails


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")
def test_full_disk(tmp_path: Path) -> None:
    """A full disk loses samples, and nothing else."""
    machine = Machine(tmp_path)
    (tmp_path / "again").mkdir()
    mount = f"mount -t tmpfs -o size=4k none {machine.work} && cd {machine.work} && head -c 4096 /dev/zero > big"
    again = f"rm big; cp -r {tmp_path}/again/* {machine.folder}; (sample 2 42 7 99); cp usage {tmp_path}/kept"
    end = f"(sample 1 42 7 99); {again}"
    for each in ("7", "uptime"):
        subprocess.run(["cp", "-r", "--parents", each, tmp_path / "again"], cwd=machine.folder, check=True)
    script = PRELUDE + scripts.text("sampler.sh", "job") + f"proc={machine.folder}\n{mount}\n{end}"
    environment = {"PATH": f"{machine.bin}:{os.environ['PATH']}", "FAKE": str(machine.folder), "UNTIL": "2500"}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], env=environment, check=True, timeout=60, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert samples((tmp_path / "kept").read_bytes())[-1].start == 2


@pytest.mark.parametrize("zombie", [False, True])
def test_ends_with_its_job(machine: Machine, zombie: bool) -> None:
    """It does not outlive a job that is killed, also in a long pause between samples."""
    (machine.bin / "sleep").unlink()
    script = f"{PRELUDE}{scripts.text('sampler.sh', 'job')}proc={machine.folder}\nsample 1 42 7 99"
    sampler = subprocess.Popen(["sh", "-c", script], cwd=machine.work, start_new_session=True)
    try:
        eventually((machine.work / "usage").exists)
        assert sampler.poll() is None  # because of its cost here, the next sample follows after two minutes
        if zombie:
            stat = machine.folder / "7" / "stat"
            stat.write_text(stat.read_text().replace(" S ", " Z "))
        else:
            shutil.rmtree(machine.folder / "7")
        killed = time.monotonic()
        assert sampler.wait(timeout=15) == 0
        assert time.monotonic() - killed < 10
    finally:
        with suppress(ProcessLookupError):
            os.killpg(sampler.pid, 9)
        sampler.wait()
