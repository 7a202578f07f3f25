"""Runs in MLflow: what scripts logged with yurt and with MLflow itself, `track`, a server, the page in a browser."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.calls import YURT
from tests.laptop import Laptop
from tests.user import User
from yurt.contexts import folders
from yurt.errors import RefusedError
from yurt.lifecycle.refresh import track
from yurt.testing.waiting import eventually
from yurt.tracking.mlflow import mlflow as verbs
from yurt.tracking.mlflow import place
from yurt.tracking.mlflow.place import Place

TRAIN = """\
import os, pathlib, sys, time
import yurt
if "own" in sys.argv:
    import mlflow
    assert mlflow.get_tracking_uri().startswith("file://")
    mlflow.set_experiment("my own")
    with mlflow.start_run(run_name="mine"):
        mlflow.log_params({"lr": 0.1, "depth": 3, "long": "x" * 7000})
        mlflow.log_metrics({"val/loss": 1.0, "val/acc": 0.5}, step=1)
        mlflow.set_tag("kind", "demo")
        mlflow.log_text("hello", "notes/hello.txt")
        with mlflow.start_run(nested=True, run_name="inner"):
            mlflow.log_metric("inner", 7.0)
for step in range(5):
    yurt.log(step=step, loss=1 / (step + 1), **{"acc (train)": step / 5})
yurt.log(odd=float("nan"))
yurt.log(odd=float("inf"))
go = pathlib.Path(os.environ["YURT_RUN_DIR"], "go")
while "wait" in sys.argv and not go.exists() and go.parent.exists():
    time.sleep(0.1)
yurt.log(step=5, loss=0.01)
"""


@contextmanager
def inside(user: User) -> Iterator[None]:
    """Use MLflow and the folders of a user in this process: to load MLflow takes many seconds."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**user.environment, **place.QUIET, **place.USUAL}.items():
            patch.setenv(name, value)
        patch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", "")
        patch.chdir(user.project)
        yield


def dump(user: User, uri: str = "") -> dict[str, dict[str, Any]]:
    """Return the runs of an MLflow store by name."""
    found: dict[str, dict[str, Any]] = {}
    with inside(user):
        client = Place(uri).client
        for experiment in client.search_experiments():
            for run in client.search_runs([experiment.experiment_id]):
                assert run.info.run_name not in found
                values = {
                    name: [(each.step, str(each.value)) for each in client.get_metric_history(run.info.run_id, name)]
                    for name in run.data.metrics
                }
                found[run.info.run_name] = {
                    "experiment": experiment.name,
                    "id": run.info.run_id,
                    "status": run.info.status,
                    "start": run.info.start_time,
                    "end": run.info.end_time,
                    "params": run.data.params,
                    "tags": run.data.tags,
                    "metrics": values,
                    "artifacts": [each.path for each in client.list_artifacts(run.info.run_id)],
                }
    return found


@pytest.fixture
def trainer(user: User) -> User:
    (user.project / "train.py").write_text(TRAIN)
    return user


def python(*words: str) -> list[str]:
    return ["--", sys.executable, "train.py", *words]


def test_a_script_that_uses_mlflow_itself(trainer: User) -> None:
    """While it runs and after its end: one MLflow run, and one for the nested run."""
    words = ["--name", "first", "--tag", "base", "--tag", "team=red", "--note", "so far"]
    run = trainer.quick("run", "--json", *words, *python("own", "wait", "--lr", "0.1")).json["data"]["run"]
    metrics = Path(run["folder"], "metrics.jsonl")
    eventually(lambda: metrics.exists() and metrics.read_text().count("\n") == 7)
    with inside(trainer):
        assert verbs.send([]).data.changed == 2
        Path(run["folder"], "go").touch()
        assert trainer.quick("wait", run["id"]).code == 0
        Path(run["folder"], "outputs", "stolen").symlink_to("/etc/passwd")  # a file of this machine is no artifact
        sent = verbs.send(["first"], artifacts=True).data
        assert (sent.changed, sent.artifacts) == (2, 1)
        assert verbs.send([]).data.changed == 0
    assert trainer.quick("mlflow", "--no-serve").out == "the MLflow store of this machine is up to date\n"

    found = dump(trainer)
    assert set(found) == {"first", "inner"}
    first = found["first"]
    assert first["experiment"] == "proj" and first["status"] == "FINISHED" and first["end"] >= first["start"]
    assert first["metrics"]["loss"] == [*((step, str(1 / (step + 1))) for step in range(5)), (5, "0.01")]
    assert len(first["metrics"]["val/loss"]) == 1
    assert [value for _step, value in first["metrics"]["odd"]] == ["nan", "1.7976931348623157e+308"]
    assert any(name.startswith("acc _train_") for name in first["metrics"])
    assert first["params"]["lr"] == "0.1" and first["params"]["depth"] == "3"
    tags = first["tags"]
    assert tags["yurt.run"] == run["id"] and tags["yurt.context"] == "local" and tags["yurt.state"] == "completed"
    assert (tags["base"], tags["team"], tags["kind"]) == ("true", "red", "demo")
    assert tags["mlflow.note.content"] == "so far" and first["artifacts"] == ["notes"]
    assert found["inner"]["tags"]["mlflow.parentRunId"] == first["id"]
    assert found["inner"]["metrics"] == {"inner": [(0, "7.0")]}
    store = trainer.home / "data/mlflow"
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert stat.S_IMODE((store / "mlflow.db").stat().st_mode) == 0o600


AS_MLFLOW = """\
import os, pathlib, urllib.parse, uuid
import yurt
assert os.environ["MLFLOW_ALLOW_FILE_STORE"] == "true"
place = pathlib.Path(urllib.parse.unquote(os.environ["MLFLOW_TRACKING_URI"][7:]))
assert str(place) == os.environ["YURT_OUTPUTS"] + "/mlruns"
run = place / "0" / uuid.uuid4().hex
for name, text in {
    "meta.yaml": "start_time: 1000\\nend_time: 2000\\nstatus: 3\\nrun_name: mine\\nlifecycle_stage: active\\n",
    "params/depth": "3",
    "metrics/val/loss": "1500 0.5 1\\n1600 0.25 2\\n",
}.items():
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text(text)
yurt.log(step=1, loss=0.5)
"""
"""Writes what MLflow writes: the nodes of the lab do not have it."""


@pytest.mark.slow
def test_a_sweep_on_a_cluster(laptop: Laptop) -> None:
    """Each task has a folder for MLflow of its own, and what is in it comes home."""
    (laptop.project / "train.py").write_text(AS_MLFLOW)
    sweep = laptop.run("beta", "--grid", "lr=0.1,0.2", "--name", "rates", "train.py")["run"]["id"]
    assert laptop.ended(sweep)["state"] == "completed", laptop.quick("logs", f"{sweep}.0").err
    with inside(laptop):
        assert verbs.send([sweep]).data.changed == 3
    found = dump(laptop)
    assert {"rates", "lr=0.1", "lr=0.2"} == set(found)
    for rate in ("0.1", "0.2"):
        one = found[f"lr={rate}"]
        assert one["tags"]["yurt.context"] == "beta" and one["params"] == {"lr": rate, "depth": "3"}
        assert one["metrics"] == {"loss": [(1, "0.5")], "val/loss": [(1, "0.5"), (2, "0.25")]}


@pytest.mark.slow
def test_autolog(trainer: User) -> None:
    """What MLflow logs by itself about a model of scikit-learn is part of the run."""
    (trainer.project / "train.py").write_text(
        "import mlflow\nfrom sklearn.linear_model import LogisticRegression\nmlflow.autolog()\n"
        "LogisticRegression().fit([[0], [1], [2], [3]], [0, 0, 1, 1])\n"
    )
    assert trainer("run", "--wait", "--name", "auto", *python()).code == 0
    with inside(trainer):
        assert verbs.send([], artifacts=True).data.changed == 1
    found = dump(trainer)["auto"]
    assert found["params"]["solver"] == "lbfgs" and "training_score" in found["metrics"]
    assert "training_confusion_matrix.png" in found["artifacts"]


def test_a_script_without_mlflow_finds_no_trace_of_it(trainer: User) -> None:
    """Only the variables are set, and those of the user stay."""
    (trainer.project / "train.py").write_text(
        "import os\nprint(os.environ['MLFLOW_TRACKING_URI'], os.listdir(os.environ['YURT_OUTPUTS']))\n"
    )
    run = trainer.quick("run", "--json", "--wait", "train.py").json["data"]["run"]
    assert trainer.quick("logs", run["id"]).out == f"file://{run['folder']}/outputs/mlruns []\n"
    for more, environment in (
        (["--var", "MLFLOW_TRACKING_URI=http://x"], {}),
        ([], {"MLFLOW_TRACKING_URI": "http://x"}),
    ):
        mine = trainer("run", "--json", "--wait", *more, "train.py", **environment).json["data"]["run"]["id"]
        assert trainer.quick("logs", mine).out == "http://x []\n"


@pytest.mark.slow
def test_track(trainer: User) -> None:
    """A run with the setting is sent when it has finished, by the next command that refreshes; others are not."""
    (trainer.home / "config").mkdir(exist_ok=True)
    (trainer.home / "config/contexts.yaml").write_text("contexts:\n  here:\n    type: local\n    neptune: true\n")
    done = trainer.quick("run", "--context", "here", "--json", *python()).json
    run = done["data"]["run"]["id"]
    assert ["Neptune service ended" in text for text in done["warnings"]] == [True]
    other = trainer.quick("run", "--wait", "--json", *python()).json["data"]["run"]["id"]
    again = trainer.quick("run", "--context", "here", "--json", "--name", "again", *python()).json
    assert again["warnings"] == [] and trainer.quick("wait", run, "again").code == 0
    eventually(lambda: trainer.quick("ps") and "tracked" in (text := shown(trainer, run)) and "not yet" not in text)
    eventually(lambda: "not yet" not in shown(trainer, "again"))
    assert "in the MLflow store of this machine" in shown(trainer, run)
    assert "tracked" not in trainer.quick("show", other).out
    found = dump(trainer)
    assert set(found) == {run, "again"} and found[run]["status"] == "FINISHED"


def shown(user: User, run: str) -> str:
    lines = user.quick("show", "--cached", run).out.splitlines()
    return next((line for line in lines if line.startswith("tracked")), "")


@pytest.mark.slow
def test_track_to_a_server_that_cannot_be_reached(trainer: User) -> None:
    """The reason is shown, and it is tried again later."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        uri = f"http://me:secret@127.0.0.1:{port.getsockname()[1]}"
        (trainer.home / "config").mkdir(mode=0o700)
        file = trainer.home / "config/contexts.yaml"
        plain = uri.replace("me:secret@", "")
        file.write_text(f"contexts:\n  local: {{type: local, track: true, mlflow_uri: {plain}}}\n")
        file.chmod(0o600)
        trainer.environment["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"
        run = trainer.quick("run", "--wait", "--json", *python()).json["data"]["run"]["id"]
        direct = trainer("mlflow", run, "--to", uri, "--json")
        eventually(lambda: trainer.quick("ps") and "refuses connections" in shown(trainer, run))
    assert direct.code == 4 and "it refuses connections" in direct.json["error"]["message"]
    assert "secret" not in direct.out + direct.err + shown(trainer, run)
    assert "next try" in shown(trainer, run)


def test_track_without_mlflow(trainer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning for each run, by the first command that looks."""
    (trainer.project / "yurt.yaml").write_text("track: true\n")
    monkeypatch.setattr(track, "is_installed", lambda: False)
    with inside(trainer):
        run = trainer.quick("run", "--wait", "--json", *python()).json["data"]["run"]["id"]
        with folders.store() as store:
            store.track_later([run], 0)
            store._db.execute("UPDATE tracked SET at = 0, warned = 0")
            assert [text.partition(",")[0] for text in track.begin(store)] == [f"finished but not tracked: {run}"]
            store.track_later([run], 0)
            assert track.begin(store) == []


class Refusing(http.server.BaseHTTPRequestHandler):
    """A server that wants a token."""

    def do_GET(self) -> None:
        self.send_response(200 if self.headers.get("Authorization") == "Bearer right" else 401)
        self.end_headers()
        self.wfile.write(b"You are not authenticated.")  # as MLflow says it

    do_POST = do_GET

    def log_message(self, *_words: object) -> None:
        pass


@pytest.mark.slow
def test_a_server_that_refuses(trainer: User) -> None:
    trainer.quick("run", "--wait", *python())
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as wants:
        threading.Thread(target=wants.serve_forever, daemon=True).start()
        with inside(trainer), pytest.raises(RefusedError, match="refuses access") as refused:
            verbs.send([], to=f"http://127.0.0.1:{wants.server_port}")
        wants.shutdown()
    assert "yurt secret set MLFLOW_TRACKING_TOKEN" in refused.value.hint


@pytest.mark.parametrize("words", [["--to", "x7q4z"], ["--to"], ["nothing"]])
def test_mistakes(user: User, words: list[str]) -> None:
    found = user.quick("mlflow", *words)
    assert found.code == (3 if words == ["nothing"] else 2) and "hint: " in found.err


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real MLflow server."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    uri = f"http://127.0.0.1:{port}"
    argv = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", "127.0.0.1", "--port", str(port)]
    argv += [
        "--backend-store-uri",
        f"sqlite:///{folder}/server.db",
        "--artifacts-destination",
        str(folder / "artifacts"),
    ]
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            argv, cwd=folder, stdout=log, stderr=log, env={**os.environ, **quiet}, start_new_session=True
        )
    try:
        eventually(lambda: answers(f"{uri}/health"), seconds=300)
        yield uri
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.slow
def test_a_server_of_the_user(trainer: User, server: str) -> None:
    """Runs and tasks arrive once, also if the journal of this machine is lost."""
    trainer.quick("run", "--wait", "--name", "one", *python())
    sweep = trainer.quick("run", "--wait", "--json", "--grid", "lr=0.1,0.2", *python()).json["data"]["run"]["id"]
    assert trainer("mlflow", "--to", server, "--artifacts").out == f"4 MLflow runs written to {server}\n"
    before = dump(trainer, server)
    assert set(before) == {"one", sweep, "lr=0.1", "lr=0.2"}
    assert before["lr=0.1"]["tags"]["mlflow.parentRunId"] == before[sweep]["id"]
    assert len(before["one"]["metrics"]["loss"]) == 6
    for file in (trainer.home / "data/mlflow/journals").iterdir():
        file.unlink()
    assert trainer("mlflow", "--to", f"{server}/").code == 0
    assert dump(trainer, server) == before


@pytest.mark.slow
def test_the_page_in_a_browser(trainer: User, tmp_path: Path) -> None:
    """The page lists runs and tasks with their curves. PICTURES=DIR keeps the pictures."""
    from playwright.sync_api import sync_playwright

    pictures = Path(os.environ.get("PICTURES", tmp_path))
    trainer.quick("run", "--wait", "--name", "rates", "--grid", "lr=0.1,0.2,0.3", *python())
    trainer.quick("run", "--wait", "--name", "baseline", "--note", "no schedule", *python("--lr", "0.5"))
    process = subprocess.Popen(
        [YURT, "mlflow", "--no-browser"],
        env={**os.environ, **trainer.environment},
        cwd=trainer.project,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        with sync_playwright() as play:
            flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
            flags += ["--disable-component-update", "--disable-sync"]
            browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
            page = browser.new_page(viewport={"width": 1280, "height": 720})
            page.goto(url, timeout=120_000)
            base = url.partition("?")[0]
            page.goto(f"{base}#/experiments/1/runs", timeout=120_000)
            for name in ("baseline", "rates"):
                page.get_by_role("link", name=name).first.wait_for(timeout=120_000)
            page.screenshot(path=pictures / "mlflow-runs.png")
            page.goto(f"{base}#/experiments/1/runs?compareRunsMode=CHART", timeout=120_000)
            page.get_by_text("loss", exact=True).first.wait_for(timeout=120_000)
            page.wait_for_timeout(3000)  # the lines are drawn after their titles
            page.screenshot(path=pictures / "mlflow.png")
            page.goto(f"{base}#/experiments/1/runs", timeout=120_000)
            page.get_by_role("link", name="baseline").first.click()
            page.get_by_text("no schedule").first.wait_for(timeout=120_000)
            page.screenshot(path=pictures / "mlflow-run.png")
            browser.close()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
