"""Compiles the null GPU: one engine from ``csrc/*.c`` and the table, one empty stand-in for each library name.

Loaded in two ways: by setuptools through ``[tool.setuptools.cmdclass]``, where it must not import the package (its
dependencies are not installed yet), and as ``python -m vramdoc.nullgpu.build``, which builds in the tree. A wheel
carries what is built; the sources are in the sdist.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
ENGINE = "libvramdoc_nullgpu.so"
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-cast-function-type")
# Names that C files define, as far as they are not made by macros.
_DEFINED = re.compile(r"^NULLGPU_API\s[^;{=]*?\b(\w+)\(", re.MULTILINE)
_VERSIONED = re.compile(r"^nullgpu_v1[23]_")
_PARAMETERS = {"p": "void *", "i": "long ", "f": "float ", "d": "double "}


class BuildError(Exception):
    """The engine cannot be built; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A function that does the same as many others, as ``abi/functions.tsv`` describes it."""

    name: str
    behaviour: str  # "ok", "launch" (writes device memory), "fail STATUS" (is not provided)
    parameters: str  # one letter each: p pointer, i integer, f float, d double; "" where no argument matters
    outputs: tuple[tuple[int, str], ...]  # argument, and what it receives: "handle", or "zero" and a size


def read_table(path: Path) -> list[Row]:
    """The rows of ``functions.tsv``."""
    rows = []
    with path.open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            pairs = (output.split("=") for output in (line["outputs"] or "").split())
            rows.append(
                Row(
                    name=line["function"],
                    behaviour=line["behaviour"],
                    parameters=line["parameters"] or "",
                    outputs=tuple((int(index), what) for index, what in pairs),
                )
            )
    return rows


def defined_names(sources: Iterable[Path]) -> set[str]:
    """Names that the C files export."""
    found = {name for source in sources for name in _DEFINED.findall(source.read_text(encoding="utf-8"))}
    return {_VERSIONED.sub("", name) for name in found}


def _body(row: Row) -> str:
    lines = []
    for index, what in row.outputs:
        if what == "handle":
            lines.append(f"    NULLGPU_SET((void **)a{index}, nullgpu_new_handle());")
        else:
            lines.append(f"    nullgpu_zero(a{index}, {int(what.removeprefix('zero'))});")
    if row.behaviour == "launch":
        lines.append("    nullgpu_launched();")
    kind, _, status = row.behaviour.partition(" ")
    lines.append(f'    return nullgpu_fail("{row.name}", {int(status)});' if kind == "fail" else "    return 0;")
    return "\n".join(lines)


def _function(row: Row) -> str:
    last = max((index for index, _ in row.outputs), default=-1)
    parameters = ", ".join(f"{_PARAMETERS[letter]}a{i}" for i, letter in enumerate(row.parameters[: last + 1]))
    unused = [f"a{i}" for i in range(last + 1) if i not in dict(row.outputs)]
    silence = f"    {', '.join(f'(void){name}' for name in unused)};\n" if unused else ""
    # Weak: a definition in a C file, even one that a macro makes, takes its place.
    head = f"NULLGPU_API __attribute__((weak)) long {row.name}({parameters or 'void'})"
    return f"{head}\n{{\n{silence}{_body(row)}\n}}\n"


def generate(rows: Sequence[Row], by_hand: set[str]) -> str:
    """C source of the table's functions that no file defines, and of the list of driver functions."""
    rows = [row for row in rows if row.name not in by_hand]
    driver = sorted(name for name in by_hand | {row.name for row in rows} if re.match(r"cu[A-Z]", name))
    driver = [name for name in driver if not name.startswith("cuFile")]
    declared = "".join(f"void {name}();\n" for name in driver if name in by_hand)
    listed = "".join(f'    {{"{name}", (void *){name}}},\n' for name in driver)
    return (
        '#include "internal.h"\n\n'
        + "\n".join(_function(row) for row in rows)
        + f"\n{declared}\nconst struct nullgpu_named_function nullgpu_driver_functions[] = {{\n{listed}}};\n"
        + f"const size_t nullgpu_driver_function_count = {len(driver)};\n"
    )


def read_sonames(path: Path) -> list[str]:
    """The library names that a stand-in is built for."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t")[0] for line in lines if line]


def stand_in_file(soname: str) -> str:
    """The file of a stand-in, which the loader finds by the name within it.

    torch, once it sees a loaded file named libcudart, loads all of NVIDIA's installed libraries by their paths; so
    that file has another name.
    """
    return soname.replace("libcudart", "libnullgpu_runtime")


def find_compiler() -> list[str]:
    """The C compiler's command line: ``CC``, or the first of the usual names; raises :class:`BuildError`."""
    chosen = os.environ.get("CC")
    if chosen:
        command = shlex.split(chosen)
        if command and shutil.which(command[0]):
            return command
        raise BuildError(f"vramdoc needs a C compiler, and CC={chosen} is not one: install it, or unset CC")
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    raise BuildError("vramdoc needs a C compiler: install one (apt install gcc, dnf install gcc), or set CC to yours")


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"the C compiler failed: {shlex.join(command)}\n{done.stderr.strip()}")


def build(target: Path, sources: Path = HERE) -> list[Path]:
    """Builds the engine and its stand-ins in ``target``; returns the files. Raises :class:`BuildError`."""
    if not sys.platform.startswith("linux"):
        raise BuildError(f"vramdoc's null GPU runs on Linux only, this is {sys.platform}")
    compiler = find_compiler()
    stand_ins = target / "stubs"
    stand_ins.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch_name, ThreadPoolExecutor(os.cpu_count()) as pool:
        scratch = Path(scratch_name)
        engine = _build_engine(compiler, sources, scratch, pool)
        sonames = read_sonames(sources / "abi" / "sonames.tsv")
        made = list(pool.map(lambda soname: _link_stand_in(compiler, soname, engine, scratch), sonames))
        placed = [_place(file, stand_ins / stand_in_file(file.name)) for file in made]
        for stale in set(stand_ins.glob("lib*")) - set(placed):  # of an older version of the table
            stale.unlink(missing_ok=True)
        return [_place(engine, target / ENGINE), *placed]


def _build_engine(compiler: Sequence[str], sources: Path, scratch: Path, pool: ThreadPoolExecutor) -> Path:
    folder = sources / "csrc"
    files = sorted(folder.glob("*.c"))
    generated = scratch / "table.c"
    rows = read_table(sources / "abi" / "functions.tsv")
    generated.write_text(generate(rows, defined_names(files)), encoding="utf-8")

    def compile_one(source: Path) -> str:
        compiled = str(scratch / f"{source.stem}.o")
        _run([*compiler, *FLAGS, f"-I{folder}", "-c", str(source), "-o", compiled])
        return compiled

    objects = list(pool.map(compile_one, [*files, generated]))
    engine = scratch / ENGINE
    options = [
        "-shared",
        "-s",
        f"-Wl,-soname,{ENGINE}",
        f"-Wl,--version-script={folder / 'versions.map'}",
        "-Wl,-z,defs",
    ]
    _run([*compiler, *options, *objects, "-lm", "-o", str(engine)])
    return engine


def _link_stand_in(compiler: Sequence[str], soname: str, engine: Path, scratch: Path) -> Path:
    """A library that defines nothing and needs the engine: one unversioned symbol in it would abort the loader."""
    empty = scratch / f"{soname}.c"
    empty.write_text("", encoding="utf-8")
    command = [*compiler, "-shared", "-nostdlib", "-s", f"-Wl,-soname,{soname}", "-Wl,--no-as-needed"]
    # Without separate segments and the old hash table it takes a page or two.
    command += ["-Wl,-rpath,$ORIGIN/..", "-Wl,-z,noseparate-code", "-Wl,--hash-style=gnu", str(empty), str(engine)]
    _run([*command, "-o", str(scratch / soname)])
    return scratch / soname


def _place(built: Path, destination: Path) -> Path:
    """Moves into place in one step: a process may be running on the old file."""
    beside = destination.with_name(f".{destination.name}.{os.getpid()}")
    shutil.copyfile(built, beside)
    beside.chmod(0o755)
    beside.replace(destination)
    return destination


class BuildNullGpu(build_ext):
    """``build_ext`` for the one extension that pyproject.toml names: it stands for the engine and its stand-ins.

    No Python extension module is built, but setuptools treats the package as one that has compiled parts.
    """

    def run(self) -> None:
        """Builds into the wheel, or in the tree for an editable install."""
        try:
            self._built = build(self._target())
        except BuildError as error:
            raise SystemExit(f"error: {error}") from None  # one line, no traceback

    def _target(self) -> Path:
        return HERE / "lib" if self.inplace or self.editable_mode else Path(self.build_lib, "vramdoc", "nullgpu", "lib")

    def get_source_files(self) -> list[str]:
        """What the sdist carries beside the Python files."""
        root = HERE.parent.parent
        folders = (HERE / "csrc", HERE / "abi")
        return sorted(str(path.relative_to(root)) for folder in folders for path in folder.iterdir())

    def get_outputs(self) -> list[str]:
        """Files that the command has made."""
        return [str(path) for path in getattr(self, "_built", [])]

    def get_output_mapping(self) -> dict[str, str]:
        """Nothing: an editable install finds the files in the tree."""
        return {}


class PlatformWheel(bdist_wheel):
    """The libraries depend on the platform, and on no version of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """``py3-none-<platform>``."""
        return "py3", "none", super().get_tag()[2]


def main() -> int:
    """``python -m vramdoc.nullgpu.build``: builds in the tree, for development."""
    try:
        files = build(HERE / "lib")
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(files)} libraries in {HERE / 'lib'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
