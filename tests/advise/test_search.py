"""The search over combinations, on a step whose best plans are known beforehand."""

from __future__ import annotations

from tests.advise.steps import MIB, Step, choose
from vramdoc.advise import plans
from vramdoc.advise.blocks import knapsack, tighten
from vramdoc.advise.candidate import Candidate, Ledger
from vramdoc.advise.front import fastest_fitting, front, thin
from vramdoc.advise.search import Space, search
from vramdoc.report.measurement import Choice

CHOICES = {
    "precision": [Choice(name="bf16_autocast")],
    "kernels": [Choice(name="fused_optimizer"), Choice(name="no_foreach")],
    "layout": [Choice(name="channels_last")],
    "checkpointing": [Choice(name="checkpoint")],
    "micro_batch": [Choice(name="micro_batch", options={"parts": 2}), Choice(name="micro_batch", options={"parts": 4})],
}


def found(allowed_mib: int, step: Step | None = None) -> tuple[Ledger, list[tuple[str, Candidate]]]:
    step = step or Step()
    ledger = Ledger(step)
    space = Space(choices=CHOICES, allowed_bytes=allowed_mib * MIB, saved_by_block=tuple(step.blocks))
    results = search(ledger, [Candidate()], space)
    chosen = plans.choose(ledger, results, space.allowed_bytes)
    return ledger, [(label, result.candidate) for label, result in chosen]


def names(candidate: Candidate) -> set[str]:
    return {choice.name for choice in candidate.choices}


def test_takes_only_what_is_faster_where_all_fits() -> None:
    """With room for everything the fastest plan has what is faster, and nothing that only saves memory."""
    _, chosen = found(10_000)
    assert chosen[0] == (plans.FASTEST, choose("bf16_autocast", "fused_optimizer"))


def test_checkpoints_as_few_blocks_as_fit() -> None:
    """400 MiB of state leave 350 of 750 for 7 of 12 blocks: the other 5 are checkpointed, found by bisection."""
    _, chosen = found(750)
    label, fastest = chosen[0]
    assert label == plans.FASTEST
    assert names(fastest) == {"bf16_autocast", "fused_optimizer", "checkpoint"}
    (checkpoint,) = (choice for choice in fastest.choices if choice.name == "checkpoint")
    assert checkpoint.options == {"blocks": 5}


def test_finds_what_helps_only_beside_something_else() -> None:
    """The optimizer's temporaries are the peak only once activations are gone: then the fused optimizer counts."""
    _, chosen = found(420)
    assert {"checkpoint", "fused_optimizer"} <= names(chosen[0][1])


def test_nothing_fits() -> None:
    """State alone is too much: there is one plan, the smallest, without what does not make it smaller."""
    ledger, chosen = found(300)
    ((label, smallest),) = chosen
    assert label == plans.SMALLEST
    assert ledger.one(smallest).reserved_bytes == 400 * MIB
    assert "channels_last" not in names(smallest)


def test_nothing_is_measured_twice() -> None:
    """Every run costs time: a candidate that was tried is not tried again."""
    step = Step()
    found(750, step)
    keys = [candidate.key for candidate in step.tried]
    assert len(keys) == len(set(keys))


def test_front_drops_what_is_beaten() -> None:
    """A result that another beats in both, or equals with fewer changes, is no choice."""
    step = Step()
    results = step([choose(), choose("checkpoint"), choose("no_foreach"), choose("bf16_autocast")])
    kept = [result.candidate for result in front(results)]
    assert kept == [choose("bf16_autocast"), choose("checkpoint")]


def test_thin_keeps_the_ends_and_the_fastest_that_fits() -> None:
    """The beam is narrow, but never loses what the plans are made of."""
    step = Step()
    results = front(step([choose("checkpoint", blocks=count) for count in range(13)]))
    allowed = 800 * MIB
    kept = thin(results, 4, allowed)
    assert len(kept) == 4
    assert (kept[0], kept[-1]) == (results[0], results[-1])
    assert fastest_fitting(results, allowed) in kept


def test_unequal_blocks_by_knapsack() -> None:
    """Blocks that keep 400, 200, 100, 50 MiB: 240 MiB are saved by the second and the fourth, not by the first."""
    assert sorted(knapsack([400, 200, 100, 50], 240)) == [1, 3]
    step = Step(blocks=(400, 200, 100, 50), temporaries=0)
    ledger = Ledger(step)
    whole = ledger.one(choose("checkpoint"))
    (result,) = tighten(ledger, [whole], (400 + 750 - 240) * MIB, [size * MIB for size in step.blocks])
    assert result.candidate == choose("checkpoint", which="1,3")
    assert result.reserved_bytes == (400 + 500) * MIB


def test_excluded_and_lacking_choices() -> None:
    """8-bit Adam has no fused form, and what changes a strategy for several GPUs needs one."""
    assert choose("adam_8bit").having(Choice(name="fused_optimizer")) is None
    assert choose().having(Choice(name="fsdp_bf16")) is None
    sharded = choose("zero3", "fsdp_bf16")
    assert sharded.having(Choice(name="ddp")) is None, "DDP has no precision policy"


def test_prefixes_of_a_plan() -> None:
    """Steps are shown in the order they are applied, on one GPU until a strategy is among them."""
    steps = plans.prefixes(choose("bf16_autocast", "checkpoint"))
    assert steps == [choose("checkpoint"), choose("checkpoint", "bf16_autocast")]
