"""``python -m vramdoc.integrations.light [REQUIREMENT ...]``: installs what vramdoc needs on a machine without a GPU.

That is torch's CUDA build without NVIDIA's libraries, for which the null GPU stands in, and without Triton. pip cannot
leave out a dependency, so this installs round by round without dependencies, and reads from what has been installed
what the next round must bring. Further requirements (``transformers peft``, ``torch==2.12.*``) come the same way: by
pip itself they would bring NVIDIA's libraries after all. What is left out comes where it is named: ``triton``, which
torch.compile needs.

Runs right after ``pip install --no-deps vramdoc``, so it needs the standard library alone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^]]*)\])?")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")
_DISPENSABLE = re.compile(r"nvidia-(?!ml-py$)|cuda-(?:toolkit|bindings|pathfinder)$|triton$")


def main(arguments: list[str] | None = None) -> int:
    """Installs, and says what was left out; returns pip's exit status where it fails."""
    parser = argparse.ArgumentParser(
        prog="python -m vramdoc.integrations.light",
        description="Installs what vramdoc needs, without NVIDIA's libraries: the null GPU stands in for them.",
    )
    parser.add_argument("requirements", nargs="*", metavar="REQUIREMENT", help="what else to install, as pip takes it")
    options = parser.parse_args(arguments)
    named = {parse(requirement)[0] for requirement in options.requirements}
    installed: list[str] = []
    left_out: set[str] = set()
    wanted = list(options.requirements)
    while True:
        for requirement in dependencies(["vramdoc", *installed]):
            name, _ = parse(requirement)
            if _DISPENSABLE.match(name) and name not in named:
                left_out.add(name)
            elif requirement not in wanted and name != "vramdoc":
                wanted.append(requirement)
        if wanted == installed:
            print(f"left out: {', '.join(sorted(left_out))}")
            return 0
        # All of them in each round: pip then takes versions that fit every requirement known so far.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        status = subprocess.run([*command, *wanted], check=False).returncode
        if status != 0:
            return status
        installed = list(wanted)


def dependencies(requirements: Iterable[str]) -> Iterator[str]:
    """What the installed packages among ``requirements`` depend on, with the markers that pip will judge."""
    for requirement in requirements:
        name, extras = parse(requirement)
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # a marker has excluded it
            continue
        for line in lines:
            text, _, marker = line.partition(";")
            asked = _EXTRA.search(marker)
            if asked is None:
                yield line
            elif asked[1] in extras:
                yield text.strip()


def parse(requirement: str) -> tuple[str, frozenset[str]]:
    """The normalised name (``nvidia-ml-py``) and the extras of a requirement; raises ``SystemExit`` for neither."""
    match = _REQUIREMENT.match(requirement)
    if match is None:
        raise SystemExit(f"error: not a requirement with a name: {requirement!r}")
    extras = frozenset(extra.strip() for extra in (match[2] or "").split(",") if extra.strip())
    return re.sub(r"[-_.]+", "-", match[1]).lower(), extras


if __name__ == "__main__":
    sys.exit(main())
