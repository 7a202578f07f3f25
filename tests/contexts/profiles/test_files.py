"""Profiles of others: their faults, what they may not contain, and where they come from."""

from __future__ import annotations

import os
import shutil
import ssl
import stat
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.calls import Yurt
from tests.user import User
from yurt.contexts.profiles import files, find
from yurt.contexts.profiles.apply import apply
from yurt.errors import UserError
from yurt.model.context import Context
from yurt.model.facts import Facts

GOOD = """\
name: big
title: Big cluster
sources:
  - {url: "https://docs.big.example/storage", read: 2026-01-02}
hosts: [login.big.example]
"""


def faults(text: str) -> str:
    with pytest.raises(UserError) as caught:
        files.parse(text, Path("/sites/big.yaml"), base=find.bundled)
    assert caught.value.code == "config-invalid"
    return caught.value.message


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("ssh_command: evil", ":6: ssh_command is not a key of a profile"),
        ("context: {ssh_command: evil}", ":6: context.ssh_command is not a key that a profile may set"),
        ("context: {ssh_options: [-oProxyCommand=evil]}", "context.ssh_options is not a key that a profile may set"),
        ("context:\n  after_module_load_cmd: evil", ":7: context.after_module_load_cmd is not a key that a profile"),
        ("context: {variables: {LD_PRELOAD: /tmp/evil.so}}", "context.variables is not a key that a profile may set"),
        ("context: {sbatch_options: {wrap: evil}}", "context.sbatch_options is not a key that a profile may set"),
        ("context: {container: evil}", "context.container is not a key that a profile may set"),
        ("context: {slurm_url: evil@host}", "context.slurm_url is not a key that a profile may set"),
        ("context: {modules_to_load: [/tmp/evil]}", "context.modules_to_load may contain only names of modules"),
        ("context: {modules_to_load: [a/../../evil]}", "context.modules_to_load may contain only names of modules"),
        ('context: {modules_to_load: ["a; evil"]}', "context.modules_to_load may contain only names of modules"),
        ("context: {wheelhouse: [/tmp/wheels]}", "context.wheelhouse may contain only absolute folders"),
        ("context: {wheelhouse: [/cvmfs/../tmp/wheels]}", "context.wheelhouse may contain only absolute folders"),
        ('context: {storage_dir: "$(touch x)/y"}', "context.storage_dir must be a folder such as $SCRATCH"),
        ("storage:\n  scratch:\n    purge: {days: soon, rule: x}", ":8: storage.scratch.purge.days is invalid"),
        ("storage: {scratch: {size: 5}}", "storage.scratch.size is not a key of a profile"),
        ("login: {keys_url: 'http://big.example'}", ":6: login.keys_url is not valid: 'http://big.example'"),
        ("base: ../../etc/passwd", ":6: base is '../../etc/passwd', which is not a profile"),
        ("title: twice", ":6: title is set twice, in lines 2 and 6"),
        ("notes: ['a\tb", "is not valid YAML"),
        ("internet: maybe", ":6: internet is invalid"),
        ('partitions: {"\\e[31m": red}', ":6: partitions"),
        ("notes: &a [x]\nmarks: *a", "anchor"),
    ],
)
def test_faults_have_a_line_and_a_key(more: str, fault: str) -> None:
    assert fault in faults(f"{GOOD}{more}\n")


@pytest.mark.parametrize("glob", ["*", "*.example", "*example.com", "login*", "*.ca"])
def test_greedy_patterns_are_refused(glob: str) -> None:
    assert "matches other sites" in faults(GOOD.replace("login.big.example", f'"{glob}"'))


def test_sources_are_required() -> None:
    assert "sources is missing" in faults("name: big\ntitle: Big\n")
    assert "sources" in faults(GOOD.replace("2026-01-02", "yesterday"))
    assert "larger than 64 KB" in faults(GOOD + "#" * 70_000)


def test_a_context_is_completed() -> None:
    """What the user gives and what the probe finds take precedence over the profile."""
    keys = "context: {partition: gpu, qos: fast, storage_dir: $WORK, time: 2h, modules_to_load: [python/3]}\n"
    known = find.Known(files.parse(GOOD + keys + "jobs: {from_home: false}\n", "big.yaml", base=find.bundled), "yurt")
    wanted = Context(name="big", type="slurm", slurm_url="me@big", qos="slow")
    context, applied = apply(wanted, known, None)
    assert (context.partition, context.qos, context.storage_dir, context.modules_to_load, context.profile) == (
        *("gpu", "slow", "$WORK", ("python/3",), "big"),
    )
    facts = Facts(probed_at=0, user="me", host="big", slurm_version="24", variables={"HOME": "/h"}, modules="lmod")
    context, applied = apply(wanted, known, facts)
    assert context.storage_dir is None and "storage_dir" not in applied.filled
    assert applied.differences == [
        "storage_dir is not set: $WORK is not set on the site",
        "the site accepts jobs submitted from the home folder",
    ]


def test_own_files_and_packages(yurt: Yurt, tmp_path: Path) -> None:
    own = tmp_path / "config" / "sites"
    own.mkdir(parents=True)
    (own / "narval.yaml").write_text(GOOD.replace("name: big", "name: narval"))
    (own / "broken.yaml").write_text("name: [\n")
    package = tmp_path / "path" / "campus_sites"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "campus.yaml").write_text(GOOD.replace("name: big", "name: campus").replace("login.", "campus."))
    about = tmp_path / "path" / "campus_sites-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: campus-sites\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[yurt.sites]\ncampus = campus_sites\n")
    there = {"PYTHONPATH": str(tmp_path / "path")}
    found = yurt("context", "profiles", "--json", environment=there).json
    origins = {each["name"]: each["origin"] for each in found["data"]}
    assert origins["narval"] == str(own / "narval.yaml") and origins["campus"] == "package campus"
    assert origins["mila"] == "yurt"
    assert len(found["warnings"]) == 1 and "broken.yaml:2" in found["warnings"][0]
    shown = yurt("context", "profiles", "campus", environment=there)
    assert shown.code == 0 and "https://docs.big.example/storage (read 2026-01-02)" in shown.out
    assert yurt("context", "profiles", "nothing").code == 3


def test_a_hostile_title_is_escaped(yurt: Yurt, tmp_path: Path) -> None:
    file = tmp_path / "evil.yaml"
    file.write_text(GOOD.replace("title: Big cluster", r'title: "\e[31mred\nnext:  rm"'))
    shown = yurt("context", "profiles", str(file))
    assert shown.code == 0 and "\x1b" not in shown.out and "\nnext:" not in shown.out


def test_a_file_is_saved_with_the_context(user: User, tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(GOOD + "storage: {scratch: {purge: {days: 7, rule: files not read}}}\ncontext: {time: 2h}\n")
    add = ("context", "add", "--no-probe", "--slurm-url", "me@elsewhere.example")
    added = user.quick(*add, "one", "--profile", str(file))
    assert added.code == 0, added.err
    assert "https://docs.big.example/storage (read 2026-01-02)" in added.out and "time: 2h" in added.out
    saved = user.home / "config" / "sites" / "big.yaml"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600 and stat.S_IMODE(saved.parent.stat().st_mode) == 0o700
    assert "# scratch: files not read for 7 days are deleted" in user.quick("context", "show", "one").out
    rows = {
        each["key"]: each["source"]
        for each in user.quick("context", "show", "one", "--resolved", "--json").json["data"]["settings"]
    }
    assert rows["time"].endswith("as in profile big") and "profile" not in rows["account"]
    assert user.quick(*add, "two", "--profile", "big").code == 0
    other = tmp_path / "other.yaml"
    other.write_text(GOOD.replace("Big cluster", "Another"))
    refused = user.quick(*add, "three", "--profile", str(other))
    assert refused.code == 2 and "is another profile with the name 'big'" in refused.err
    assert user.quick(*add, "four", "--no-profile", "--slurm-url", "me@login.big.example").out.count("profile") == 0
    assert user.quick(*add, "five", "--no-profile", "--profile", "big").code == 2


def test_a_retired_cluster_says_so(user: User) -> None:
    program = user.home / "ssh"
    program.write_text("#!/bin/sh\necho 'ssh: Could not resolve hostname x: Name or service not known' >&2\nexit 255\n")
    program.chmod(0o700)
    add = ("context", "add", "graham", "--slurm-url", "me@graham.computecanada.ca", "--ssh-command", str(program))
    failed = user.quick(*add)
    assert failed.code == 4 and "Graham was retired on 2025-09-01; its files are on Nibi" in failed.err
    assert not (user.home / "config" / "contexts.yaml").exists()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """An https server of a profile, and the environment that trusts it."""
    openssl = shutil.which("openssl")
    assert openssl
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    new = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*new, *name, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = {"/big.yaml": GOOD, "/large.yaml": "#" * 70_000, "/evil.yaml": f"{GOOD}ssh_command: evil\n"}
            if self.path == "/away.yaml":
                self.send_response(302)
                self.send_header("Location", f"http://localhost:{self.headers['Host'].rpartition(':')[2]}/big.yaml")
                self.end_headers()
                return
            self.send_response(200 if self.path in text else 404)
            self.end_headers()
            self.wfile.write(text.get(self.path, "").encode())

        def log_message(self, *_words: object) -> None:
            pass

    served = HTTPServer(("127.0.0.1", 0), Answers)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    served.socket = tls.wrap_socket(served.socket, server_side=True)
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    trust = {"SSL_CERT_FILE": str(certificate), "no_proxy": "localhost", "NO_PROXY": "localhost"}
    yield f"https://localhost:{served.server_address[1]}", trust
    served.shutdown()
    served.server_close()


def test_a_downloaded_profile_is_confirmed(user: User, server: tuple[str, dict[str, str]]) -> None:
    site, trust = server
    add = ("context", "add", "one", "--no-probe", "--slurm-url", "me@big.example", "--profile")
    saved = user.home / "config" / "sites" / "big.yaml"
    refused = user.quick(*add, f"{site}/big.yaml", **trust)
    assert refused.code == 2 and "is not confirmed" in refused.err and "--yes" in refused.err
    for path, code, words in (
        ("large.yaml", 2, "larger than 64 KB"),
        ("evil.yaml", 2, "ssh_command is not a key of a profile"),
        ("away.yaml", 4, "unknown url type"),
        ("absent.yaml", 3, "404"),
    ):
        wrong = user.quick(*add, f"{site}/{path}", "--yes", **trust)
        assert wrong.code == code and words in wrong.err, wrong
    plain = user.quick(*add, f"{site}/big.yaml".replace("https:", "http:"), "--yes")
    assert plain.code == 2 and "must begin with https://" in plain.err
    assert not saved.exists() and not (user.home / "config" / "contexts.yaml").exists()
    assert user.quick(*add, f"{site}/big.yaml", "--yes", **trust).code == 0
    assert saved.read_text() == f"# from {site}/big.yaml\n{GOOD}" and stat.S_IMODE(os.stat(saved).st_mode) == 0o600
