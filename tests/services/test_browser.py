"""Services on nodes of the lab, opened in a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright
from playwright.sync_api import TimeoutError as Timeout

from tests.laptop import Laptop
from tests.services.serving import client, end_runs, link_cut, services
from tests.tracking.boards import CHROMIUM, FLAGS
from tests.tracking.events import WRITER
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

PACKAGES: list[str] = []
"""Options with which nodes use the packages of this environment."""
"""Nodes of the lab see the disk of this machine, and run the same version of Python."""

ROOM = ("--mem", "1G", "--time", "20m", "--no-browser")

PICTURE = os.environ.get("PICTURE", "")
"""A file for a picture of JupyterLab, such as docs/pictures/jupyter.png."""


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.fixture(autouse=True)
def runs_end(laptop: Laptop) -> Iterator[None]:
    """A test that fails leaves no jobs."""
    yield
    end_runs(laptop)


class Notebook:
    """A new notebook in JupyterLab."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        page.goto(url)
        page.goto(url.partition("?")[0] + "lab?reset")
        page.wait_for_selector(".jp-Launcher", timeout=120_000)
        page.click(".jp-LauncherCard[data-category=Notebook] >> nth=0")
        page.wait_for_selector(".jp-Notebook .cm-content", timeout=60_000)
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=60_000)

    def execute(self, code: str, wanted: str) -> None:
        """Execute a cell at the end of the notebook until this is a part of its output."""
        cell = self.page.locator(".jp-Notebook-cell").last
        cell.locator(".cm-content").click()
        self.page.keyboard.insert_text(code)
        output = self.page.locator(".jp-OutputArea-output", has_text=wanted)

        def executed() -> bool:
            # JupyterLab starts the first kernel of a server twice: a cell sent to the first one has no output.
            if output.count() == 0:
                cell.locator(".cm-content").click()
                self.page.keyboard.press("Control+Enter")
                with suppress(Timeout):
                    output.first.wait_for(timeout=3000)
            return output.count() > 0

        eventually(executed, seconds=180)
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("b")  # a new cell


@pytest.fixture(autouse=True)
def packages(package_options: list[str]) -> None:
    PACKAGES[:] = package_options


@pytest.mark.slow("alpha")
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_jupyter(laptop: Laptop, lab: Lab, browser: Browser, name: str) -> None:
    """A cell is executed on a node. After the link was cut the page works again, and the kernel has its variables."""
    with client(laptop, "jupyter", "--context", name, *ROOM, *PACKAGES) as made:
        page = browser.new_page(viewport={"width": 1100, "height": 640})
        (service,) = services(laptop)
        notebook = Notebook(page, made.url)
        notebook.execute("import os\nnode = os.uname().nodename\nprint('cell', 6 * 7, 'on', node)", "cell 42 on n")
        assert "token" not in page.url and service["private"] == "socket"
        with link_cut(lab, name):
            if name == "alpha":  # the other one is healed before anything notices
                eventually(lambda: "the connection to the node is lost" in made.err)
        notebook.execute("print('still on', node)", f"still on {service['node']}")
        if PICTURE:
            page.add_style_tag(content=".Toastify { display: none }")  # a question about news of Jupyter
            page.screenshot(path=PICTURE)
    assert laptop.quick("serve", "stop", "jupyter").code == 0


@pytest.mark.slow
def test_tensorboard(laptop: Laptop, browser: Browser) -> None:
    (laptop.project / "log.py").write_text(
        WRITER + "w = Writer(os.environ['YURT_OUTPUTS'])\nfor step in range(5): w.add('loss', step, 1 / (step + 1))\n"
    )
    run = laptop.run("alpha", "python3", "log.py")["run"]["id"]
    assert laptop.ended(run)["state"] == "completed"
    with client(laptop, "tensorboard", run, *ROOM, *PACKAGES) as made:
        page = browser.new_page()
        page.goto(made.url)
        page.locator("scalar-card line-chart").first.wait_for(timeout=120_000)
    assert laptop.quick("serve", "stop").code == 0


@pytest.mark.slow
def test_mlflow(laptop: Laptop, browser: Browser) -> None:
    log = "import mlflow\nwith mlflow.start_run(run_name='first-run'): mlflow.log_metric('loss', 0.5)\n"
    (laptop.project / "log.py").write_text(log)
    needs = ("--mem", "2G", *PACKAGES)
    store = "/lustre/scratch/alice/mlflow.db"
    variable = ("--var", f"MLFLOW_TRACKING_URI=sqlite:///{store}")
    run = laptop.run("alpha", *needs, *variable, "python3", "log.py")["run"]["id"]
    assert laptop.ended(run)["state"] == "completed"
    with client(laptop, "mlflow", "--context", "alpha", "--store", store, *needs, "--no-browser") as made:
        page = browser.new_page()
        page.goto(made.url, timeout=120_000)
        page.goto(f"{made.url.partition('?')[0]}#/experiments/0/runs", timeout=120_000)
        page.get_by_role("link", name="first-run").first.wait_for(timeout=120_000)
    assert laptop.quick("serve", "stop").code == 0


@pytest.mark.slow
def test_a_server_of_the_user(laptop: Laptop, lab: Lab, browser: Browser) -> None:
    """On a port, in a network of its own; the link is cut while the page is open."""
    (laptop.project / "hello.txt").write_text("hello from a node")
    command = ("--context", "alpha", "--no-browser", "--", "python3", "-m", "http.server", "{port}")
    with client(laptop, *command) as made:
        page = browser.new_page()
        page.goto(made.url)
        page.get_by_text("hello.txt").click()
        page.get_by_text("hello from a node").wait_for()
        assert services(laptop)[0]["private"] == "network"
        with link_cut(lab, "alpha"), pytest.raises(Error):
            page.reload(timeout=5000)
        page.reload(timeout=120_000)
        page.get_by_text("hello from a node").wait_for()
    assert laptop.quick("serve", "stop").code == 0
