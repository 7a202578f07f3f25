"""Faults of the shared connection, where yurt opens sessions by itself, and of the scripts that a site keeps."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random

from tests.campaign.moments import Draw, arm, moment, reach, start, work
from tests.campaign.mux_proxy import ANSWERS, POINTS, MuxProxy
from tests.campaign.site import Site
from yurt.lab.cluster import inside

KEPT = Path("home/alice/.cache/yurt/scripts")
"""Where a login host keeps scripts."""

EVIL = "campaign-evil"
"""The file in /tmp of a login host that a tampered script writes, if it is executed."""

CHANGES = ("purged", "byte", "truncated", "evil", "symlink", "linked folder", "foreign", "open", "folder", "flicker")


def draw_transport(random: Random) -> Draw:
    how = random.choice(["master", "master", "answer", "answer", "sessions", "descriptors", "kept", "kept", "kept"])
    found: Draw = {"how": how}
    if how == "master":  # killed between two packets
        found |= {"point": random.choice(POINTS), "times": random.choice([1, 1, 2])}
    if how == "answer":  # instead of, or after the first packets of, the real master
        found |= {"point": random.choice(POINTS), "answer": random.choice(list(ANSWERS))}
        found |= {"times": random.choice([1, 2, 0])}
    if how == "sessions":
        found |= {"most": random.choice([1, 1, 0]), "seconds": round(random.uniform(0.3, 3), 2)}
    if how == "descriptors":
        found |= {"free": random.randint(0, 4)}
    if how == "kept":
        found |= {"change": random.choice(CHANGES), "at": round(random.random(), 3)}
        found |= moment(random) if random.random() < 0.4 else {}
    return work(random) | found


def perform_transport(site: Site, label: str, draw: Draw) -> None:
    _connect(site)
    _HOW[draw["how"]](site, label, draw)


def _socket(site: Site) -> Path | None:
    """Return the socket of yurt's connection, if yurt opens sessions on it by itself."""
    found = [path.with_suffix("") for path in site.client.runtime.glob("*.mux")]
    return next((path for path in found if path.is_socket()), None)


def _connect(site: Site) -> None:
    """Submit a run without faults, unless there is a connection and the site keeps scripts."""
    if not _socket(site) or not list(site.client.ssh()) or not _scripts(site):
        site.client.disconnect()
        site.submit("none", rest=0.2)


# The master is killed, or something else answers


def _answer(site: Site, label: str, draw: Draw) -> None:
    path = _socket(site)
    assert path is not None, "yurt uses the ssh program"
    kill = draw["how"] == "master"
    fail: Callable[[], object] = (lambda: site.client.kill_ssh("master")) if kill else (lambda: None)
    answer = b"" if kill else ANSWERS[draw["answer"]]
    proxy = MuxProxy(path, draw["point"], answer, times=draw["times"], fail=fail)
    try:
        site.client.end(start(site, label, draw))
        if not proxy.failures:
            site.missed.append(label)
    finally:
        proxy.close()
        site.client.disconnect()


# sshd accepts one session, or none for a while


def _limit_sessions(site: Site, label: str, draw: Draw) -> None:
    file = "/etc/lab/sshd_config"
    _on_login(site, f"cp -p {file} /run/lab/saved; sed -i 's/^MaxSessions .*/MaxSessions {draw['most']}/' {file}")
    try:
        site.client.disconnect()
        processes = [start(site, label, draw) for _each in range(3 if draw["most"] else 1)]
        site.until(lambda: all(each.poll() is not None for each in processes), draw["seconds"])
    finally:
        _on_login(site, f"cat /run/lab/saved > {file}")
    if not draw["most"]:
        site.client.disconnect()  # an open connection keeps its limit
    for each in processes:
        site.client.end(each)
    site.client.disconnect()


def _on_login(site: Site, script: str) -> None:
    """Run a script as root on the login host, and restart sshd. The relay passes connections to the inner one."""
    script += "; for each in stop start; do bash /etc/lab/service.sh sshd-inside $each; done"
    host = site.cluster.pid(site.cluster.spec.login.name)
    subprocess.run(inside(host, ["sh", "-ec", script]), capture_output=True, check=True)


# The master has too few descriptors left for a session, which needs four


def _refuse_descriptors(site: Site, label: str, draw: Draw) -> None:
    masters = [pid for pid, kind in site.client.ssh() if kind == "master"]
    for pid in masters:
        limit = len(list(Path(f"/proc/{pid}/fd").iterdir())) + draw["free"]
        subprocess.run(["prlimit", "--pid", str(pid), f"--nofile={limit}:{limit}"], check=True)
    site.client.end(start(site, label, draw))
    site.client.disconnect()


# The scripts that the site keeps


def _scripts(site: Site) -> list[Path]:
    folder = site.steps.root / KEPT
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.is_file() and len(path.name) == len(sha256().hexdigest())]


def _tamper(site: Site, label: str, draw: Draw) -> None:
    folder = site.steps.root / KEPT
    evil = site.steps.root / "tmp" / EVIL
    evil.unlink(missing_ok=True)
    found = _scripts(site)
    kept = {path: path.read_bytes() for path in found}
    over = threading.Event()
    thread = threading.Thread(target=_flicker, args=[kept, over])
    arm(site, draw)
    process = start(site, label, draw) if "step" in draw or "seconds" in draw else None
    if process is not None:
        reach(site, label, process, draw)
    try:
        if draw["change"] == "flicker":
            thread.start()
        else:
            change(folder, kept, draw["change"], draw["at"])
        site.steps.release()
        site.client.end(process or start(site, label, draw))
        site.settle()
    finally:
        over.set()
        if thread.ident:
            thread.join()
        _restore(folder)
    if evil.exists():
        site.client.wrong.append(f"{label}: a script that was tampered with was executed")


def _evil(text: bytes) -> bytes:
    """Return a script that shows that it was executed: when it is loaded, and when it is called."""
    return b"echo loaded >> /tmp/%s\n" % EVIL.encode() + text.replace(
        b"yurt_main() {\n", b"yurt_main() {\necho called >> /tmp/%s\n" % EVIL.encode(), 1
    )


def change(folder: Path, kept: dict[Path, bytes], how: str, at: float) -> None:
    """Change the kept scripts. `at`: where, as a fraction of their length."""
    aside = folder.with_name("elsewhere")
    aside.mkdir(exist_ok=True)
    aside.chmod(0o777)
    if how == "linked folder":
        for path, text in kept.items():
            (aside / path.name).write_bytes(_evil(text))
        _remove(folder)
        folder.symlink_to("elsewhere")
        return
    for path, text in kept.items():
        place = min(int(len(text) * at), len(text) - 1)
        match how:
            case "purged" | "symlink" | "folder":
                path.unlink(missing_ok=True)
                if how == "folder":
                    path.mkdir()
                elif how == "symlink":
                    (aside / path.name).write_bytes(_evil(text))
                    path.symlink_to(f"../elsewhere/{path.name}")
            case "byte":
                path.write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
            case "truncated":
                path.write_bytes(text[:place])
            case _:
                path.write_bytes(_evil(text))
                os.chown(
                    path, *((0, 0) if how == "foreign" else (path.parent.stat().st_uid, path.parent.stat().st_gid))
                )
                path.chmod({"foreign": 0o644, "open": 0o777}.get(how, 0o600))
    if how == "purged":
        _remove(folder)


def _flicker(kept: dict[Path, bytes], over: threading.Event) -> None:
    """Change the scripts back and forth while they are called."""
    turn = 0
    while not over.wait(0.002):
        turn += 1
        for path, text in kept.items():
            aside = path.with_name(f".{path.name}")
            aside.write_bytes(_evil(text) if turn % 2 else text)
            aside.chmod(0o644)
            aside.rename(path)


def _remove(folder: Path) -> None:
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def _restore(folder: Path) -> None:
    """Remove what the change left: yurt sends its scripts again."""
    _remove(folder)
    _remove(folder.with_name("elsewhere"))


_HOW: dict[str, Callable[[Site, str, Draw], None]] = {
    "master": _answer,
    "answer": _answer,
    "sessions": _limit_sessions,
    "descriptors": _refuse_descriptors,
    "kept": _tamper,
}
