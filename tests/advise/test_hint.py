"""The hint for a broken budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.advise.steps import MIB, Step
from tests.report.samples import too_big
from vramdoc.advise import advisor, checked
from vramdoc.advise.hint import cheapest, sentence


def test_free_before_speed() -> None:
    """A free measure that is enough is taken before a slower one; where none is free enough, the fastest that is."""
    step = Step(state=900, blocks=(20,) * 4)
    found = cheapest(step, 1000 * MIB, "reserved", 0)
    assert found is not None
    assert [choice.name for choice in found.candidate.choices] == ["fused_optimizer"]
    found = cheapest(Step(temporaries=0), 500 * MIB, "reserved", 0)
    assert found is not None
    assert [choice.name for choice in found.candidate.choices] == ["checkpoint"]
    assert cheapest(Step(), 100 * MIB, "reserved", 0) is None


def test_metric_of_the_device(tmp_path: Path) -> None:
    """With the context the same step needs more, and the sentence says the figure that was asked for."""
    step = Step(state=900, blocks=(20,) * 4)
    assert cheapest(step, 1000 * MIB, "device", 20 * MIB) is not None
    assert cheapest(step, 1000 * MIB, "device", 21 * MIB) is None
    (tmp_path / "model.py").write_text("")
    found = cheapest(step, 1000 * MIB, "reserved", 0)
    assert found is not None
    told = sentence(found, checked(tmp_path / "model.py", gpu="t4"), "reserved")
    assert told.startswith("fused optimizer brings it to 980.0 MiB: vramdoc advise ")
    assert told.endswith("--gpu t4 --show fused_optimizer")


def test_no_hint_where_there_is_no_target() -> None:
    """A report whose target is gone still has its finding."""
    assert advisor("reserved")(replace(too_big(), target="gone.py"), 10 * MIB) == ""
