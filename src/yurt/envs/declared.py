"""Reads the packages that a project declares. Installs nothing and runs no program.

yurt does not install the project itself: its code is in the working directory of the run. Neither does it install other
local folders and files. `Declared.left_out` lists the lines that name them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec

from yurt.config.text import LARGEST, content_of, text_of
from yurt.envs import conda_file, pyproject, requirements, uv_lock
from yurt.envs.lock import normal
from yurt.errors import UserError
from yurt.model.sizes import megabytes

Kind = Literal["uv", "pyproject", "requirements", "conda"]
CONDA = ("environment.yml", "environment.yaml")
MOST_FILES, MOST_LINES = 200, 20_000
"""Maximum numbers of files that a requirements file includes, and of packages that a project names."""

KINDS = "`uv.lock`, `pyproject.toml`, a requirements file (.txt or .in) or a conda environment (.yml or .yaml)"
VARIABLE = re.compile(r"\$\{\w+\}")


class Broken(msgspec.Struct, frozen=True):
    """Why a declaration cannot be used, and how to repair it."""

    message: str
    code: str
    hint: str


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What one file of a project, and the files that it includes, declare."""

    kind: Kind
    files: dict[str, bytes]
    """The declaring files by their path in the project; the first one includes the others."""
    python: str = ""
    """The specifier of Python versions, such as `>=3.9`; empty means any version."""
    extras: list[str] = []
    groups: list[str] = []
    left_out: list[str] = []
    """The lines or folders of local packages, which are not installed."""
    broken: Broken | None = None
    folder: str = ""
    """The folder that `files` are in, if it is not that of the project."""

    @property
    def title(self) -> str:
        return next(iter(self.files))

    def check(self) -> None:
        """Raise UserError if the declaration cannot be used."""
        if self.broken is not None:
            raise UserError(self.broken.message, code=self.broken.code, hint=self.broken.hint)
        for file in self.files:
            if found := _variable(self, file):
                raise UserError(
                    f"'{file}' contains the variable {found}; yurt expands no variable in the files of a project",
                    code="config-invalid",
                    hint="write the address without it; a user name and password belong in ~/.netrc, `pip.conf` or"
                    " `UV_INDEX`",
                )

    def text(self, file: str) -> str:
        """Return a declaring file as text, with the line ends of Unix."""
        return _decoded(file, self.files[file])


def _variable(declared: Declared, file: str) -> str:
    """Return the first variable in a file that uv, pip or conda would replace by its value; empty if there is none."""
    text = declared.text(file)
    if "$" not in text and "\\" not in text:
        return ""
    if file.endswith((".toml", ".lock")):
        tables = pyproject.relevant(text) if file == "pyproject.toml" else pyproject.parsed(text)
        found = VARIABLE.search("\n".join(_texts(tables)))
    elif declared.kind == "conda" and file == declared.title:
        environment = conda_file.read(text)
        kept = {name: value for name, value in environment.items() if name != "variables"}
        found = re.search(r"\$(?:\w+|\{\w+\})", "\n".join(_texts(kept)))
    else:
        found = VARIABLE.search("\n".join(each.text for each in requirements.read(text)))
    return found[0] if found else ""


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in the tables of a file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(each)


def declarations(folder: Path) -> list[Declared]:
    """Return what a project declares, most precise first. A file that declares no packages is not listed.

    Raises no error for a broken file; `Declared.check` of that declaration does.
    """
    readers: list[tuple[str, Kind, Callable[[Path, str], Declared | None]]] = [
        ("uv.lock", "uv", _uv),
        ("pyproject.toml", "pyproject", _pyproject),
        ("requirements.txt", "requirements", _requirements),
        *((name, "conda", _conda) for name in CONDA),
    ]
    found: list[Declared] = []
    for name, kind, read in readers:
        if not (folder / name).is_file():
            continue
        try:
            declared = read(folder, name)
        except UserError as error:
            broken = Broken(error.message, error.code, error.hint)
            declared = Declared(kind=kind, files={name: b""}, broken=broken)
        if declared is not None:
            found.append(declared)
    return found


def named(
    folder: Path,
    file: str,
    *,
    python: str = "",
    extras: Sequence[str] = (),
    groups: Sequence[str] = (),
    parts: Sequence[str] = (),
) -> Declared:
    """Return what a file of the project declares, with the extras and groups that the user chose.

    `parts`: extras and groups; a name that is both is an extra.

    `python` is a version or specifier of the user and overrides that of the project; with it, a requirements file can
    be empty. UserError if the file cannot be used, or if an extra or group does not exist.
    """
    name = _inside(folder, file)
    declared: Declared | None
    match PurePosixPath(name):
        case PurePosixPath(name="uv.lock" | "pyproject.toml") as path if path.parent.name:  # a project in a folder
            below = folder / path.parent
            found = named(below, path.name, python=python, extras=extras, groups=groups, parts=parts)
            return msgspec.structs.replace(found, folder=str(below))
        case PurePosixPath(name="uv.lock"):
            declared = _uv(folder, name)
        case PurePosixPath(name="pyproject.toml"):
            declared = _pyproject(folder, name, extras=extras, groups=groups)
        case PurePosixPath(suffix=".txt" | ".in"):
            declared = _requirements(folder, name, may_be_empty=bool(python))
        case PurePosixPath(suffix=".yml" | ".yaml"):
            declared = _conda(folder, name)
        case _:
            raise UserError(f"'{name}' does not declare packages", code="usage", hint=f"name {KINDS}")
    if declared is None:
        raise _declares_nothing(folder, name)
    declared = msgspec.structs.replace(declared, python=specifier(python) or declared.python)
    if parts and declared.kind in ("uv", "pyproject"):
        project = pyproject.read(declared.text("pyproject.toml"))
        grouped = {normal(each) for each in project.groups} - {normal(each) for each in project.extras}
        groups = [*groups, *(each for each in parts if normal(each) in grouped)]
        parts = [each for each in parts if normal(each) not in grouped]
    return _chosen(declared, [*extras, *parts], groups)


def specifier(python: str) -> str:
    """Return the specifier for a Python version or specifier of the user: `3.11` becomes `==3.11.*`. UserError."""
    python = python.strip()
    if re.fullmatch(r"\d+(\.\d+)?", python):
        return f"=={python}.*"
    if re.fullmatch(r"\d+\.\d+\.\d+", python):
        return f"=={python}"
    if not _is_specifier(python):
        raise UserError(
            f"'{python}' is not a Python version", code="usage", hint="write a version such as `3.11` or `>=3.10`"
        )
    return python


def _is_specifier(text: str) -> bool:
    if re.fullmatch(rf"(?:{requirements.VERSION}(?: *, *{requirements.VERSION})*)?", text):
        return True
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


def _uv(folder: Path, name: str) -> Declared:
    files = {name: _read(folder, name)}
    try:
        lock = uv_lock.read(_decoded(name, files[name]))
    except ValueError as error:
        raise _invalid(name, str(error)) from None
    if not (folder / "pyproject.toml").is_file():
        raise UserError(
            f"'{name}' has no pyproject.toml beside it, which uv needs to read it",
            code="config-invalid",
            hint="add the `pyproject.toml` that the lock file was made from",
        )
    files["pyproject.toml"] = _read(folder, "pyproject.toml")
    _project("pyproject.toml", files["pyproject.toml"])
    return Declared(
        kind="uv",
        files=files | _uv_settings(folder),
        python=lock.python,
        left_out=lock.local,
    )


def _pyproject(folder: Path, name: str, *, extras: Sequence[str] = (), groups: Sequence[str] = ()) -> Declared | None:
    content = _read(folder, name)
    project = _project(name, content)
    if not project.dependencies and not extras and not groups:
        return None
    listed = pyproject.all_dependencies(_decoded(name, content))
    if len(listed) > MOST_LINES:
        raise _invalid(name, f"it names {len(listed):,} packages; the limit is {MOST_LINES:,}")
    for text in (*project.dependencies, *(each for extra in project.extras.values() for each in extra)):
        try:
            requirements.read(text)
        except requirements.Invalid as error:
            raise _invalid(name, str(error).partition(": ")[2]) from None
    local = [text for text in project.dependencies if requirements.is_local(text)]
    return Declared(
        kind="pyproject",
        files={name: content} | _uv_settings(folder),
        python=project.python or _pinned_python(folder),
        left_out=["."] * project.builds + local + sorted(set(project.local.values())),
    )


def _requirements(folder: Path, name: str, *, may_be_empty: bool = False) -> Declared | None:
    files: dict[str, bytes] = {}
    lines = _included(folder, name, files)
    itself = [extras for each in lines if (extras := requirements.extras_of_itself(each)) is not None]
    project = _optional_project(folder)
    if itself and (project.dependencies or project.extras):
        # `-e .` also installs what the project depends on.
        files["pyproject.toml"] = _read(folder, "pyproject.toml")
    elif not may_be_empty and not any(each.kind == "requirement" for each in lines):
        return None
    return Declared(
        kind="requirements",
        files=files | _uv_settings(folder),
        python=project.python or _pinned_python(folder),
        extras=sorted({extra for each in itself for extra in each if extra in project.extras}),
        left_out=[each.text for each in lines if each.kind == "local"],
    )


def _conda(folder: Path, name: str) -> Declared | None:
    content = _read(folder, name)
    try:
        tables = conda_file.read(_decoded(name, content))
    except ValueError as error:
        raise _invalid(name, str(error)) from None
    if not isinstance(tables, dict) or not isinstance(tables.get("dependencies"), list):
        return None
    files, left_out = {name: content}, list[str]()
    for text in pip_lines(tables):
        for line in _lines(name, text):
            if line.kind in ("include", "constraint"):
                inner = _included(folder, _include(folder, name, line), files)
                left_out += [each.text for each in inner if each.kind == "local"]
            elif line.kind == "local":
                left_out.append(line.text)
    return Declared(kind="conda", files=files, left_out=left_out)


def pip_lines(environment: dict[str, Any]) -> list[str]:
    """Return the lines for pip in a conda environment."""
    inner = (each["pip"] for each in environment["dependencies"] if isinstance(each, dict) and "pip" in each)
    return [str(line) for lines in inner if isinstance(lines, list) for line in lines]


def _included(folder: Path, name: str, files: dict[str, bytes]) -> list[requirements.Line]:
    """Add a requirements file and the files that it includes to `files`; return the lines of all."""
    if name in files:
        return []
    title = next(iter(files), name)
    if len(files) > MOST_FILES:
        raise _invalid(title, f"it includes more than {MOST_FILES} other files")
    files[name] = _read(folder, name)
    lines = _lines(name, _decoded(name, files[name]))
    found = list(lines)
    for line in lines:
        if line.kind in ("include", "constraint"):
            inner = _included(folder, _include(folder, name, line), files)
            found += inner if line.kind == "include" else []
    if len(found) > MOST_LINES or sum(map(len, files.values())) > LARGEST:
        raise _invalid(
            title, f"with the files that it includes, it has more than {MOST_LINES:,} lines or {megabytes(LARGEST)} MB"
        )
    return found


def _include(folder: Path, name: str, line: requirements.Line) -> str:
    """Return the path in the project of a file that a line includes."""
    at = f"'{name}' line {line.number} includes '{requirements.shown(line.value)}'"
    if "://" in line.value:
        # It can name indexes and variables like any file of the project, and change after yurt has checked it.
        raise UserError(
            f"{at}, which is not a file of the project",
            code="config-invalid",
            hint="download it into the project, and include that file",
        )
    try:
        path = (folder / name).parent.joinpath(line.value).resolve().relative_to(folder.resolve())
        exists = (folder / path).is_file()
    except ValueError:
        raise UserError(
            f"{at}, which is outside the project",
            code="config-invalid",
            hint="copy the file into the project, and include the copy",
        ) from None
    except (OSError, RuntimeError):  # a name that no file can have, or a link to itself
        path, exists = Path(line.value), False
    if not exists:
        hint = f"add '{requirements.shown(str(path))}', or remove the line"
        raise UserError(f"{at}, which does not exist", code="config-invalid", hint=hint)
    return path.as_posix()


def _lines(name: str, text: str) -> list[requirements.Line]:
    try:
        return requirements.read(text)
    except requirements.Invalid as error:
        raise _invalid(name, str(error)) from None


def _project(name: str, content: bytes) -> pyproject.Project:
    try:
        project = pyproject.read(_decoded(name, content))
    except ValueError as error:
        raise _invalid(name, str(error)) from None
    if not _is_specifier(project.python):
        raise _invalid(name, f"requires-python: '{project.python}' is not a version specifier")
    return project


def _optional_project(folder: Path) -> pyproject.Project:
    """Return the pyproject.toml of a folder; an empty one if it is absent or broken."""
    name = "pyproject.toml"
    try:
        return _project(name, _read(folder, name))
    except UserError:
        return pyproject.Project()


def _uv_settings(folder: Path) -> dict[str, bytes]:
    name = "uv.toml"
    if not (folder / name).is_file():
        return {}
    content = _read(folder, name)
    try:
        pyproject.parsed(_decoded(name, content))
    except ValueError as error:
        raise _invalid(name, str(error)) from None
    return {name: content}


def _pinned_python(folder: Path) -> str:
    """Return the specifier for the first version in .python-version, without its patch release; empty if none."""
    try:
        words = text_of(folder / ".python-version").split()
    except UserError:
        return ""
    found = re.fullmatch(r"(?:cpython[-@]?|python-?)?(3\.\d+)(?:\.\d+)?", words[0]) if words else None
    return f"=={found[1]}.*" if found else ""


def _chosen(declared: Declared, extras: Sequence[str], groups: Sequence[str]) -> Declared:
    if not extras and not groups:
        return declared
    if declared.kind not in ("uv", "pyproject"):
        raise UserError(
            f"'{declared.title}' has no extras or groups; only `uv.lock` and `pyproject.toml` have them",
            code="usage",
            hint="leave them out, or name `pyproject.toml`",
        )
    project = pyproject.read(declared.text("pyproject.toml"))
    for what, asked, known in (("extra", extras, list(project.extras)), ("group", groups, project.groups)):
        for each in asked:
            if normal(each) not in map(normal, known):
                names = ", ".join(f"`{name}`" for name in [*project.extras, *project.groups]) or "none"
                raise UserError(f"pyproject.toml has no {what} '{each}'", code="usage", hint=f"it has {names}")
    return msgspec.structs.replace(declared, extras=sorted({*extras}), groups=sorted({*groups}))


def _declares_nothing(folder: Path, name: str) -> UserError:
    if name == "pyproject.toml" and (tool := _optional_project(folder).foreign):
        return UserError(
            f"'{name}' declares its packages for {tool}, in a table that yurt does not read",
            code="config-invalid",
            hint="run `poetry export -o requirements.txt`, and name `requirements.txt`",
        )
    return UserError(f"'{name}' declares no packages", code="config-invalid", hint=f"name {KINDS}")


def _inside(folder: Path, file: str) -> str:
    """Return the path of a file relative to the project. UserError if it is outside or does not exist."""
    path = folder / file
    try:
        name = path.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        raise UserError(
            f"'{file}' is outside the project {folder}", code="usage", hint="copy it into the project"
        ) from None
    if not path.is_file():
        known = [each.title for each in declarations(folder)]
        hint = f"the project declares packages in {', '.join(f'`{each}`' for each in known)}" if known else ""
        raise UserError(
            f"'{file}' is not a file of the project {folder}", code="not-found", hint=hint or f"name {KINDS}"
        )
    return name


def _read(folder: Path, name: str) -> bytes:
    try:
        content = content_of(folder / name)
    except OSError as error:
        raise UserError(
            f"'{name}' cannot be read: {error.strerror}", code="config-invalid", hint=f"run `ls -l {name}`"
        ) from None
    _decoded(name, content)
    return content


def _decoded(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        encoding = "UTF-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "ISO-8859-1"
        raise UserError(
            f"'{name}' line {line} is not in UTF-8",
            code="config-invalid",
            hint=f"convert it: `iconv -f {encoding} -t UTF-8 {name} > new && mv new {name}`",
        ) from None


def _invalid(name: str, reason: str) -> UserError:
    return UserError(f"'{name}' is invalid: {reason}", code="config-invalid", hint=f"correct `{name}`")
