"""Runs the first start of an ordinary run on this machine, as job.sh does, without a program for each step.

Ordinary: without restarts, secrets, predecessors, an environment to unpack, or files to stage. It writes
the same files in the same order as main.sh and ending.sh, so either can continue after the other, and whatever is not
ordinary is left to job.sh: at the beginning, if its folders may not be the user's alone, and at the end, if the command
failed, was stopped, or ran long enough to be sampled. Standard library only: the process of a run imports it.
"""

from __future__ import annotations

import os
import time

from yurt.backends.local import gate, own, process, work_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # see process.py

# The same as in yurt.model.layout, which the process of a run does not import.
JOB, WINNER, EXIT, CANCEL, START, END = "job.sh", "winner", "exit.json", "cancel", "gen.", "end."
STOPPED, CHILD, USAGE, WHY, NO_LINKS = "stopped.", "child.", "usage", "why", "no-links"

SAMPLED_AFTER = 0.4
"""Seconds after which the sampler starts: shorter commands should not pay for it. The same as in main.sh."""

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)


class Facts:
    """What the process of an ordinary run needs to know about it, from the lines of a text; see `written`."""

    def __init__(self, text: str) -> None:
        self.code, copy, writable, self.subfolder, grace, limit, *self.paths = text.split("\n")
        self.copy, self.writable, self.grace, self.limit = bool(copy), bool(writable), int(grace), int(limit)


def written(code: str, *, copy: bool, writable: bool, subfolder: str, grace: int, limit: int, paths: list[str]) -> str:
    """Return the text for `Facts`; empty if it cannot be one.

    `grace`: seconds between TERM and KILL. `limit`: seconds after which the command is stopped; 0: never. `paths`:
    what must be the user's alone.
    """
    lines = [code, "yes" if copy else "", "yes" if writable else "", subfolder, str(grace), str(limit), *paths]
    return "" if any("\n" in line for line in lines) else "\n".join(lines)


def run(nonce: str, text: str) -> int:
    """Pass the gate, run the command, record its end. The current directory is the run folder."""
    facts = Facts(text)
    usable = hasattr(signal, "sigtimedwait") and os.path.exists("/proc/self/stat") and not os.path.exists(NO_LINKS)
    in_slurm = "SLURM_CPUS_ON_NODE" in os.environ or "SLURM_JOB_NUM_NODES" in os.environ
    if not usable or in_slurm or not own.surely_own(facts.paths):
        _become_job(nonce)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # from here on none is lost, nor interrupts a step
    return _Start(nonce, facts).run()


def _become_job(*words: str) -> NoReturn:
    os.execv("/bin/sh", ["sh", JOB, *words])


class _Start:
    """The first start of a run."""

    def __init__(self, nonce: str, facts: Facts) -> None:
        self.nonce, self.facts = nonce, facts
        self.mask = os.umask(0o077)
        self.pid = os.getpid()
        self.node = os.uname().nodename
        self.me = f"{nonce}.{self.pid}.0.{self.node}.{self.pid}.{process.born(self.pid) or 0}.{process.boot() or 0}"
        self.stopped = ""
        self.child = self.sampler = 0
        self.kill_at = self.stop_at = float("inf")

    def run(self) -> int:
        # The gate: one submission wins, and only the winner starts.
        if gate.write_once(WINNER, f"{self.nonce}.{self.pid}", self.me) != f"{self.nonce}.{self.pid}":
            return 0
        if (
            gate.read_written(EXIT)
            or gate.write_once(f"{START}1", self.me, self.me) != self.me
            or gate.read_written(EXIT)
        ):
            return 0
        self.began, self.spent_before = int(time.time()), _spent()
        if signal.SIGTERM in signal.sigpending() or os.path.exists(CANCEL):
            self._note_stop("stopped")
            return self._hand_over(143)
        self._make_folders()
        began = time.monotonic()
        if self.facts.limit:
            self.stop_at = began + self.facts.limit
        self.child = self._start_command()
        _try_to_write(f"{CHILD}1", "w", f"{self.child} {process.born(self.child) or ''}\n")
        self._wait_for_command(began)
        # Before it is reaped: until then no other process can have its id.
        self._signal_command(signal.SIGKILL)  # processes that the command left behind
        _pid, status, used = os.wait4(self.child, 0)
        seconds = time.monotonic() - began
        if self.sampler:
            _kill_session(self.sampler)
        code = os.waitstatus_to_exitcode(status)
        if code < 0 and -code not in (signal.SIGINT, signal.SIGPIPE):  # in the log, as a shell writes it
            dumped = " (core dumped)" if os.WCOREDUMP(status) else ""
            os.write(2, f"{signal.strsignal(-code)}{dumped}\n".encode())
        if code or self.stopped or self.sampler:
            return self._hand_over(code if code >= 0 else 128 - code, used.ru_maxrss)
        self._finish(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss)
        return 0

    def _make_folders(self) -> None:
        if self.facts.writable:
            return  # job.sh makes them
        try:
            work_folder.make(self.facts.code, self.facts.subfolder)
        except OSError:
            return  # job.sh tries again, and says what is wrong

    def _start_command(self) -> int:
        """Start the part of job.sh that runs the command, in a session of its own, and return its process."""
        os.environ["YURT_RESTARTS"] = "0"
        os.environ.pop("YURT_SHARE", None)
        shell = _found("bash") or _found("sh") or "/bin/sh"
        return self._fork([shell, os.path.abspath(JOB), "inside", self.nonce], self.mask)

    def _start_sampler(self) -> int:
        words = ["sample", "1", str(self.child), str(self.pid), str(process.born(self.pid) or "")]
        return self._fork(["/bin/sh", os.path.abspath(JOB), *words], 0o077, quiet=True)

    def _fork(self, words: list[str], mask: int, *, quiet: bool = False) -> int:
        if child := os.fork():
            return child
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2) if quiet else (0,):
                os.dup2(null, number)
            os.umask(mask)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            os.execv(words[0], words)
        finally:
            os._exit(127)

    def _wait_for_command(self, began: float) -> None:
        """Wait until the command has ended, without reaping it. Passes signals on, and starts the sampler."""
        while not os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            now = time.monotonic()
            if not self.sampler and now - began >= SAMPLED_AFTER:
                self.sampler = self._start_sampler()
            if now >= self.stop_at:
                self.stop_at = float("inf")
                self._stop("timeout")
            if now >= self.kill_at:
                self.kill_at = now + 1
                self._signal_command(signal.SIGKILL)
            until = min(self.stop_at, self.kill_at, float("inf") if self.sampler else began + SAMPLED_AFTER)
            self._handle(self._take_signal(max(0.0, min(3600.0, until - now))))

    def _take_signal(self, seconds: float) -> int:
        """Return a signal that was sent to this process; 0 if none is within these seconds."""
        found = signal.sigtimedwait(SIGNALS, seconds)
        return 0 if found is None else found.si_signo

    def _handle(self, number: int) -> None:
        if number == signal.SIGTERM:
            late = time.monotonic() > self.stop_at - 5  # as Slurm does at the limit
            self._stop("timeout" if late else "stopped")
        elif number == signal.SIGINT:
            self._signal_command(signal.SIGINT)
            self._note_stop("stopped")
        elif number in (signal.SIGUSR1, signal.SIGUSR2):
            self._signal_command(number)

    def _stop(self, why: str) -> None:
        """Signal the command to end, and kill it after the grace period."""
        self._signal_command(signal.SIGTERM)
        self._note_stop(why)
        if time.time() <= self.began + 2:  # one that arrives while a shell forks is lost with its traps
            self._signal_command(signal.SIGTERM)
        self.kill_at = min(self.kill_at, time.monotonic() + self.facts.grace)

    def _signal_command(self, number: int) -> None:
        """Signal the command and everything that it started."""
        try:
            os.killpg(self.child, number)
        except OSError:
            try:
                os.kill(self.child, number)  # its session does not exist yet
            except OSError:
                return

    def _note_stop(self, why: str) -> None:
        """Record why this start stops, while there is time."""
        why = "cancelled" if os.path.exists(CANCEL) else why
        if self.stopped and why != "cancelled":
            return
        self.stopped = why
        gate.write_once(f"{STOPPED}1", why, self.me, patience=3)

    def _hand_over(self, status: int, largest: int = 0) -> int:
        """Let job.sh finish this start."""
        cause = self.stopped if status else ""
        if status in (130, 137, 143) and not cause and os.path.exists(CANCEL):
            cause = "cancelled"
        for number in SIGNALS[:-1]:
            signal.signal(number, signal.SIG_IGN)  # as ending.sh does
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.umask(self.mask)
        _become_job("ended", self.nonce, self.me, str(status), cause, str(self.began), self.spent_before, str(largest))

    def _finish(self, seconds: float, cpu: float, largest: int) -> None:
        """Record that the command completed; the same fields as in ending.sh. `largest`: as in sampler.sh."""
        now = int(time.time())
        fields = f'{{"code":0,"signal":0,"cause":"","started":{self.began},"ended":{now},"seconds":{now - self.began},'
        fields += f'"node":"{self.node}","job":"{self.pid}","restarts":0'
        memory = -(-largest // 1024)
        fields += f',"usage":{{"seconds":{seconds:.3f},"cpu_seconds":{cpu:.3f}'
        fields += f',"memory_mb":{memory},"largest_process":true,"nodes":1}}'
        _try_to_write(USAGE, "a", f"1 {seconds:.1f} {cpu:.2f} 0.00 {memory} {memory} - -\n")
        try:
            measured = work_folder.measured()
        except OSError:
            measured = None
        if measured is not None:
            fields += f',"kb":{measured[0]},"files":{measured[1]}'
        gate.write_once(EXIT, fields + "}", self.me, patience=600)  # without it, the end is not known
        gate.write_once(f"{END}1", f"0 done {self.began} {now}", self.me)
        try:
            if os.path.exists(WHY):
                os.unlink(WHY)
            work_folder.tidy(self.facts.code, keep_copy=self.facts.copy)
        except OSError:
            pass  # what is left takes room, but changes nothing


def _spent() -> str:
    """Return the CPU time of the processes that this one has waited for, and the uptime, as `spent` of sampler.sh."""
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    with open("/proc/uptime") as file:
        return f"{int(fields[13]) + int(fields[14])} {file.read().split()[0]}"


def _try_to_write(path: str, mode: str, text: str) -> None:
    """Write a file that the run can do without: the disk may be full."""
    try:
        with open(path, mode, opener=gate.private) as file:
            file.write(text)
    except OSError:
        pass


def _kill_session(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            return


def _found(name: str) -> str:
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        path = os.path.join(folder or ".", name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return ""
