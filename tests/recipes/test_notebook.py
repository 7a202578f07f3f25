"""A notebook in a kernel of its own: functions and classes defined in its cells run on a context."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import Here

CELLS = [
    "import asyncio, yurt\nassert asyncio.get_running_loop().is_running()",
    "class Point:\n    def __init__(self, x):\n        self.x = x",
    "scale = 2\n\ndef scaled(point):\n    print('scaling')\n    return Point(scale * point.x)",
    'with yurt.executor("local") as executor:\n  found = list(executor.map(scaled, [Point(1), Point(2)], timeout=99))',
    "[type(found[0]) is Point, [each.x for each in found]]",
    'tasks = yurt.runs(sweep="@last-sweep")\n[tasks[1].result().x, tasks[1].logs("out"), len(tasks.to_rows())]',
    'executor = yurt.executor("local")\nasync def asked(x):\n'
    "    return await asyncio.wrap_future(executor.submit(lambda: scale * x))",
    "await asyncio.gather(asked(5), asked(6))",
    "scale = 'now'\nexecutor.submit(lambda: scale).result(100)",
    "def fails():\n    raise KeyError('of a cell')\nerror = executor.submit(fails).exception(100)\n"
    "executor.shutdown()\n[type(error), 'raise KeyError' in str(error.__cause__)]",
    "tasks",
]
SHOWN = {
    4: "[True, [2, 4]]",
    5: "[4, 'scaling\\n', 2]",
    7: "[10, 12]",
    8: "'now'",
    9: "[KeyError, True]",
    10: "<yurt.Runs: 2>",
}


def executed(cells: list[dict[str, Any]], folder: Path) -> Any:
    """Run cells in a kernel of the Python of these tests, which is not installed; return the notebook."""
    # Imported here, because pytest imports this module in each worker and these imports take seconds.
    import nbformat
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    class Kernels(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=argv, display_name=kernel_name, language="python")

    notebook = nbformat.from_dict({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})  # type: ignore[no-untyped-call]
    manager = AsyncKernelManager(kernel_name="yurt", kernel_spec_manager=Kernels())
    NotebookClient(notebook, km=manager, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def test_cells_of_a_notebook(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"c{at}", "source": cell, "metadata": {}, "outputs": [], "execution_count": None}
        for at, cell in enumerate(CELLS)
    ]
    notebook = executed(cells, here.project)
    values = {
        at: output["data"]["text/plain"]
        for at, cell in enumerate(notebook.cells)
        for output in cell.outputs
        if output.output_type == "execute_result"
    }
    assert values == SHOWN
    (table,) = (output["data"]["text/html"] for output in notebook.cells[-1].outputs)
    assert table.startswith("<table>") and table.count("completed") == 2
