"""The sampler in jobs: what it records of real processes, and over days of a clock that a test turns."""

from __future__ import annotations

import os
import shutil
import subprocess
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

    def run(self, *, seconds: int, then: str = "sample 1 42 7 99", **variables: str) -> None:
        """Run the sampler until the job ends, after so many seconds of its clock."""
        start = f"proc={self.folder} cgroups={self.folder}/groups\n"
        script = PRELUDE + scripts.text("sampler.sh", "job") + start + then
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "FAKE": str(self.folder),
            "UNTIL": str(1000 + seconds),
        }
        environment |= {"SLURM_JOB_ID": "12", "SLURM_CPUS_ON_NODE": "4", "SLURM_MEM_PER_NODE": "2048", **variables}
        subprocess.run(["sh", "-c", script], cwd=self.work, env=environment, check=True, timeout=120)

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
    machine.run(seconds=440 * 300)
    found = samples(machine.text)
    assert 200 < len(found) <= 400
    assert found[-1].peak == max(each.memory for each in found) == MOST
    times = [each.seconds for each in found]
    assert times == sorted(times) and times[0] < 1000 and times[-1] > 430 * 300


def test_a_later_start_keeps_earlier_samples(machine: Machine) -> None:
    before = "= 1 2 4 -\n" + "".join(f"1 {each}.0 {each}.50 0.00 50 5000 - -\n" for each in range(1, 350))
    (machine.work / "usage").write_text(before)
    machine.run(seconds=80 * 300, then="sample 2 42 7 99")
    found = samples(machine.text)
    assert {each.start for each in found} == {1, 2} and len(found) < 400 and found[0].start == 1
    total = usage(machine.text)
    assert total is not None and total.memory_mb == 5000 and total.cpu_seconds == 349.5 + 14.5


def test_control_group_of_the_job(machine: Machine) -> None:
    """What the control group counts is a bound for the sum of processes, in which forks share memory."""
    group = machine.folder / "groups" / "slurmstepd.scope" / "job_12"
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text("usage_usec 5000000\n")
    (group / "memory.stat").write_text("anon 100000000\nfile 900000000\nshmem 48576\n")
    (group / "memory.peak").write_text(f"{700 << 20}\n")
    machine.run(seconds=900)
    found = usage(machine.text)
    assert found is not None and found.memory_mb == 700


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


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
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


def test_ends_with_its_job(tmp_path: Path) -> None:
    """It does not outlive a job that is killed, and does not count it or itself."""
    script = PRELUDE + scripts.text("sampler.sh", "job")
    holder = subprocess.Popen(["sleep", "60"])
    born = Path(f"/proc/{holder.pid}/stat").read_text().rpartition(") ")[2].split()[19]
    sampler = subprocess.Popen(
        ["sh", "-c", f"{script}sample 1 1 {holder.pid} {born}"], cwd=tmp_path, start_new_session=True
    )
    try:
        eventually((tmp_path / "usage").exists)
    finally:
        holder.kill()
        holder.wait()
    assert sampler.wait(timeout=30) == 0
