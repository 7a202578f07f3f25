"""yurt.checkpointing: saves atomically, signals in time, and restores checkpoints after a restart."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from tests.node.conftest import Run

COUNTING = """\
import time, yurt
with yurt.checkpointing() as saved:
    step = int(saved.load("step", b"0"))
    print("from", step, "after", saved.restarts, flush=True)
    while step < 10**6:
        step += 1
        time.sleep(0.001)
        if saved.wanted:
            saved.save("step", str(step))
            print("at", step)
            saved.leave()
"""


def signalled(process: subprocess.Popen[str], number: signal.Signals) -> str:
    """Send a signal once the script has started; return its output."""
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 85 and err == "", (process.returncode, err)
    return first + out


def test_save_on_a_signal_and_restart(run: Run) -> None:
    at = 0
    for start, number in enumerate((signal.SIGUSR1, signal.SIGTERM, signal.SIGUSR1)):
        output = signalled(run.start(COUNTING, YURT_RESTARTS=str(start)), number).split()
        assert output[:4] == ["from", str(at), "after", str(start)] and int(output[5]) > at
        at = int(output[5])
        assert (run.folder / "checkpoints" / "step").read_text() == str(at)
    assert [each.name for each in (run.folder / "checkpoints").iterdir()] == ["step"]


def test_signal_handlers_are_restored(run: Run) -> None:
    script = """\
import os, signal, yurt
heard = []
mine = lambda number, frame: heard.append(number)
signal.signal(signal.SIGUSR1, mine)
with yurt.checkpointing() as saved:
    assert not saved.wanted
    os.kill(os.getpid(), signal.SIGUSR1)
    assert saved.wanted and not heard
    with yurt.checkpointing() as inner:
        pass
    assert signal.getsignal(signal.SIGUSR1) == saved._ask
os.kill(os.getpid(), signal.SIGUSR1)
assert heard == [signal.SIGUSR1] and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
"""
    run(script)


@pytest.mark.parametrize("content", ["b'\\x00\\xff' * 10", "bytearray(b'ab')", "memoryview(b'ab')", "'\\u00fc'", "b''"])
def test_what_is_saved_is_loaded(run: Run, content: str) -> None:
    script = f"""\
import yurt
with yurt.checkpointing() as saved:
    content = {content}
    assert saved.load("a") is None and saved.load("a", b"x") == b"x"
    for name in ("a", "deep/down/b"):
        saved.save(name, "before")
        saved.save(name, content)
        wanted = content.encode("utf-8") if isinstance(content, str) else bytes(content)
        assert saved.load(name) == wanted, saved.load(name)
        assert open(saved.path(name), "rb").read() == wanted
"""
    run(script, LC_ALL="C")


def test_killed_while_saving(run: Run) -> None:
    """The earlier checkpoint is kept; the incomplete file is removed by the next start."""
    script = "import yurt\nwith yurt.checkpointing() as saved:\n    while True: saved.save('big', b'x' * 10**7)"
    folder = run.folder / "checkpoints"
    for _try in range(5):
        process = run.start(script)
        while not list(folder.glob("big.*")) or not (folder / "big").exists():
            assert process.poll() is None
            time.sleep(0.0005)
        process.kill()
        process.communicate()
        assert (folder / "big").stat().st_size == 10**7
    run("import yurt\nwith yurt.checkpointing(): pass", SLURM_PROCID="1", YURT_RESTARTS="1")
    left = [each.name for each in folder.iterdir()]
    assert len(left) > 1, "files of another task must stay"
    run("import yurt\nwith yurt.checkpointing() as saved: assert len(saved.load('big')) == 10**7", YURT_RESTARTS="1")
    assert [each.name for each in folder.iterdir()] == ["big"]


def test_a_full_disk_is_an_error_and_loses_nothing(run: Run) -> None:
    script = """\
import os, resource, signal, yurt
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with yurt.checkpointing() as saved:
    saved.save("a", b"before")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    try:
        saved.save("a", b"x" * 5000)
    except OSError as error:
        print(error.strerror)
    assert saved.load("a") == b"before" and os.listdir(saved.folder) == ["a"]
"""
    assert run(script)[0] == "File too large\n"


def test_in_another_thread(run: Run) -> None:
    script = """\
import threading, yurt
def work():
    with yurt.checkpointing() as saved:
        saved.save("a", b"1")
        print(saved.wanted, saved.load("a"), flush=True)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    assert run(script) == ("False b'1'\n", "")


def test_leave_in_another_thread_ends_the_script(run: Run) -> None:
    script = """\
import threading, time, yurt
with yurt.checkpointing() as saved:
    print("buffered")
    threading.Thread(target=saved.leave).start()
    time.sleep(60)
"""
    assert run(script, code=85)[0] == "buffered\n"


def test_an_error_is_the_scripts_own(run: Run) -> None:
    _out, err = run("import yurt\nwith yurt.checkpointing() as saved:\n    raise KeyError('mine')", code=1)
    assert err.endswith("KeyError: 'mine'\n")


def test_outside_of_a_run_it_works_and_leaves_no_trace(run: Run) -> None:
    script = """\
import os, signal, yurt
with yurt.checkpointing() as saved:
    assert saved.load("a") is None and not saved.wanted and saved.restarts == 0
    saved.save("deep/a", b"1")
    assert saved.load("deep/a") == b"1"
    print(saved.folder)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
"""
    out, err = run(script, outside=True, TMPDIR=str(run.folder))
    assert out.startswith(str(run.folder)) and err == ""
    assert [each.name for each in run.folder.iterdir()] == ["params.json"]
    assert [each.name for each in run.work.iterdir()] == ["script1.py"]
