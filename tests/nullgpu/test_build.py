"""The package build: what is compiled, from which table, what the archives carry, and what a missing compiler says."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from vramdoc.nullgpu import build

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "vramdoc" / "nullgpu"


def test_archives_carry_what_they_must(tmp_path: Path) -> None:
    """A wheel runs without a compiler, an sdist builds with one; neither works with a file missing."""
    tree = tmp_path / "tree"
    skipped = shutil.ignore_patterns("__pycache__", "lib", ".*")
    shutil.copytree(ROOT / "vramdoc", tree / "vramdoc", ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    code = "import setuptools.build_meta as b; b.build_sdist('out'); b.build_wheel('out')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]

    (wheel,) = (tree / "out").glob("*.whl")
    assert wheel.name.split("-")[2:4] == ["py3", "none"]
    assert wheel.name.endswith("linux_x86_64.whl")
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    sonames = build.read_sonames(PACKAGE / "abi" / "sonames.tsv")
    stand_ins = {f"vramdoc/nullgpu/lib/stubs/{build.stand_in_file(name)}" for name in sonames}
    built = {name for name in in_wheel if name.startswith("vramdoc/nullgpu/lib/")}
    assert built == {"vramdoc/nullgpu/lib/libvramdoc_nullgpu.so", *stand_ins}
    assert not [name for name in in_wheel if name.endswith((".c", ".h", ".tsv"))]
    files = {path for suffix in ("py", "toml") for path in (tree / "vramdoc").rglob(f"*.{suffix}")}
    assert {str(path.relative_to(tree)) for path in files} - in_wheel == set()

    (sdist,) = (tree / "out").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    sources = {str(path.relative_to(tree)) for path in (tree / "vramdoc").rglob("*.*") if path.is_file()}
    assert sources - in_sdist == set()


def test_missing_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback of the build says nothing to a person who only lacks gcc."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CC", raising=False)
    assert build.main() == 1
    said = capsys.readouterr().err
    assert said == "vramdoc needs a C compiler: install one (apt install gcc, dnf install gcc), or set CC to yours\n"
    monkeypatch.setenv("CC", "nocc -m64")
    assert build.main() == 1
    assert capsys.readouterr().err == (
        "vramdoc needs a C compiler, and CC=nocc -m64 is not one: install it, or unset CC\n"
    )


def test_table_row_becomes_a_function() -> None:
    """The rules of the table: outputs of their size, distinct handles, launches counted, refusals with a name."""
    rows = [
        build.Row(name="cuMake", behaviour="ok", parameters="ipd", outputs=((1, "handle"),)),
        build.Row(name="libraryGemm", behaviour="launch", parameters="", outputs=()),
        build.Row(name="librarySize", behaviour="ok", parameters="pfp", outputs=((2, "zero8"),)),
        build.Row(name="libraryAbsent", behaviour="fail 15", parameters="", outputs=()),
        build.Row(name="cuByHand", behaviour="ok", parameters="", outputs=()),
    ]
    source = build.generate(rows, {"cuByHand", "cuFileRead"})
    weak = "NULLGPU_API __attribute__((weak)) long "
    assert (
        f"{weak}cuMake(long a0, void *a1)\n{{\n    (void)a0;\n    NULLGPU_SET((void **)a1, nullgpu_new_handle());"
        in source
    )
    assert f"{weak}libraryGemm(void)\n{{\n    nullgpu_launched();\n    return 0;\n}}" in source
    assert f"{weak}librarySize(void *a0, float a1, void *a2)" in source
    assert "nullgpu_zero(a2, 8);" in source
    assert 'return nullgpu_fail("libraryAbsent", 15);' in source
    # The driver's functions are found by name, also those written by hand; cuFile is another library.
    assert f"{weak}cuByHand" not in source
    assert '{"cuByHand", (void *)cuByHand},\n    {"cuMake", (void *)cuMake},' in source
    assert "cuFileRead" not in source


def test_table_is_in_order_and_complete() -> None:
    """Sorted, no name twice, and only letters and rules that the build knows."""
    rows = build.read_table(PACKAGE / "abi" / "functions.tsv")
    names = [row.name for row in rows]
    assert names == sorted(set(names))
    for row in rows:
        assert row.behaviour in ("ok", "launch") or row.behaviour.removeprefix("fail ").isdigit(), row
        assert set(row.parameters) <= set("pifd"), row
        for index, what in row.outputs:
            assert row.parameters[index] == "p", row
            assert what == "handle" or what.removeprefix("zero") in ("4", "8", "16"), row


def test_engine_needs_an_old_c_library_only() -> None:
    """A wheel built on a new system must load on manylinux2014's glibc: no symbol newer than 2.14."""
    engine = PACKAGE / "lib" / build.ENGINE
    listed = subprocess.run(["readelf", "-V", str(engine)], capture_output=True, text=True, check=True).stdout
    needed = {tuple(map(int, word[6:].split("."))) for word in listed.split() if word.startswith("GLIBC_2.")}
    assert needed
    assert max(needed) <= (2, 14)


def test_engine_exports_only_what_it_stands_for() -> None:
    """A name that is no API's could take the place of a program's own; both CUDA versions of a name are there."""
    engine = PACKAGE / "lib" / build.ENGINE
    listed = subprocess.run(["nm", "-D", "--defined-only", str(engine)], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    known = ("__cuda", "cuda", "cu", "nccl", "nvml", "nvrtc", "nvshmem", "nvtx", "nvJitLink", "vramdoc_nullgpu_")
    assert {name for name in names if not name.startswith(known)} - {"libcudart.so.12", "libcudart.so.13"} == {
        "pthread_exit"  # exit.c says why
    }
    assert {"cudaPointerGetAttributes@libcudart.so.12", "cudaPointerGetAttributes@@libcudart.so.13"} <= names
