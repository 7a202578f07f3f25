"""The maps of the source code: the tables in CONTRIBUTING.md and architecture.md, made from docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.architecture import layers

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"
PROTOCOLS = SOURCE / "yurt" / "backends" / "base.py"

BEGIN, END = "<!-- {name}: made by `make docs` from docstrings; edit those -->\n", "<!-- end of {name} -->\n"


def pages() -> dict[Path, str]:
    """Return the pages with their tables as they should be."""
    contributing = _with(CONTRIBUTING.read_text(), "packages", table(("Folder", "Contents"), folders()))
    architecture = _with(ARCHITECTURE.read_text(), "packages", table(("Package, from the top", "Contents"), stack()))
    architecture = _with(architecture, "protocols", table(("Protocol", "Contents", "Methods"), protocols()))
    return {CONTRIBUTING: contributing, ARCHITECTURE: architecture}


def about(file: Path) -> str:
    """Return the docstring of a package, or the first paragraph of that of a module, in one line."""
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    line = " ".join((text if file.name == "__init__.py" else text.partition("\n\n")[0]).split())
    assert line, f"{file} has no docstring"
    return line if line.endswith(".") else f"{line.rstrip(':')}."


def file_of(name: str) -> Path:
    """Return the file with the docstring of a package or a module."""
    path = SOURCE / name.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def folders() -> Iterator[list[str]]:
    """Yield each folder with code, and what it contains; then the modules beside them."""
    for package in sorted((SOURCE / "yurt").rglob("__init__.py")):
        parts = package.relative_to(SOURCE / "yurt").parts[:-1]
        if parts and not (parts[0] in ("node", "lab") and parts[1:]):
            yield [f"`{'/'.join(parts)}/`", about(package)]
    for module in sorted((SOURCE / "yurt").glob("[!_]*.py")):
        yield [f"`{module.name}`", about(module)]


def stack() -> Iterator[list[str]]:
    """Yield each package and module in the order of the layers, from the top, and what it contains."""
    for layer in layers():
        for name in layer:
            yield [f"`{name.removeprefix('yurt.')}`", about(file_of(name))]


def protocols() -> Iterator[list[str]]:
    """Yield each protocol of a backend: its name, what it is for, its methods."""
    for node in ast.parse(PROTOCOLS.read_text()).body:
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases):
            names = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
            text = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
            yield [f"`{node.name}`", text, ", ".join(f"`{name}`" for name in names)]


def table(titles: tuple[str, ...], rows: Iterator[list[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _with(page: str, name: str, text: str) -> str:
    """Return a page with this text between the marks of its name."""
    begin, end = BEGIN.format(name=name), END.format(name=name)
    before, found, rest = page.partition(begin)
    _old, ended, after = rest.partition(end)
    assert found and ended, f"the marks of {name} are missing"
    return f"{before}{begin}\n{text}\n{end}{after}"
