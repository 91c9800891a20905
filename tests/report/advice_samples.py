"""Advice made by hand, with every part that a renderer shows."""

from __future__ import annotations

from dataclasses import replace

from tests.report.samples import HOSTILE, too_big
from vramdoc.report import Device
from vramdoc.report.advice import (
    AdviceReport,
    AdviceRun,
    Effect,
    LargestBatch,
    Plan,
    PlanStep,
    Point,
    Proof,
    RankPeak,
    Ratio,
    Room,
    Shortage,
    StepTime,
    Way,
)
from vramdoc.report.measurement import Choice, Measurement, Place

GIB = 2**30
CODE = """import torch

make_optimizer_before_fused_optimizer = make_optimizer


def make_optimizer(model):
    return x
"""
LONG_LINE = f"block.forward = functools.partial({'x' * 120})"


def measurement() -> Measurement:
    """A run that found little."""
    return Measurement(
        device=Device(name="NVIDIA A100-SXM4-40GB", kind="null", total_bytes=40 * GIB, compute_capability="8.0"),
        versions={"torch": "2.14.1"},
        batch_size=4,
        steps=3,
        settled=True,
        peak_allocated_bytes=20 * GIB,
        peak_reserved_bytes=22 * GIB,
        peak_phase="backward",
        peak_step=1,
        phases=(),
        growth_bytes_per_step=0,
        alloc_retries=0,
        context_bytes=None,
    )


def advice() -> AdviceReport:
    """A step that does not fit, with plans that do."""
    base = too_big()
    checkpoint, fused = Choice(name="checkpoint", options={"blocks": 9}), Choice(name="fused_optimizer")
    ratio = Ratio(value=1.08, low=1.03, high=1.13)
    runs = tuple(
        AdviceRun(
            id=f"r{index}",
            choices=choices,
            batch_size=None,
            place=place,
            measurement=measurement(),
            time=StepTime(seconds=0.5, low=0.4, high=0.6),
        )
        for index, (choices, place) in enumerate(
            [
                ((), None),
                ((checkpoint,), None),
                ((checkpoint, fused), None),
                ((Choice(name="zero3"),), Place(rank=0, world_size=4, local_size=4)),
                ((Choice(name="zero3"),), Place(rank=3, world_size=4, local_size=4)),
            ]
        )
    )
    steps = (
        _step(checkpoint, "activation checkpointing (9 of 36 blocks)", 36 * GIB, "r1", LONG_LINE),
        _step(fused, "fused optimizer", 35 * GIB, "r2", CODE),
    )
    return AdviceReport(
        vramdoc_version="0.1.0",
        created="2026-01-02T03:04:05+00:00",
        target=base.target,
        gpu="a100-40",
        gpus=4,
        allow=("speed", "bf16_autocast"),
        base=base,
        base_run="r0",
        base_time=StepTime(seconds=0.5, low=0.4, high=0.6),
        room=Room(
            allowed_bytes=36 * GIB,
            total_bytes=40 * GIB,
            context_bytes=GIB // 2,
            context_estimated=True,
            budget_bytes=None,
            margin=0.05,
        ),
        state_bytes=9 * GIB,
        activation_bytes=30 * GIB,
        largest_batch=LargestBatch(size=12, reserved_bytes=35 * GIB, run="r0"),
        effects=(
            _effect("checkpoint", "activation checkpointing", "speed", 20 * GIB, ""),
            _effect("lora", "LoRA adapters", "training", 8 * GIB, "", allowed=False),
            _effect("fused_optimizer", "fused optimizer", "free", 0, "the peak is in the backward"),
        ),
        plans=(
            Plan(
                label="fastest that fits",
                run="r2",
                batch_size=16,
                gpus=1,
                allocated_bytes=34 * GIB,
                reserved_bytes=35 * GIB,
                fits=True,
                time=ratio,
                largest_batch=LargestBatch(size=17, reserved_bytes=36 * GIB, run="r2"),
                steps=steps,
                notes=("a note of the run",),
            ),
            Plan(
                label="smallest",
                run="r0",
                batch_size=16,
                gpus=1,
                allocated_bytes=44 * GIB,
                reserved_bytes=45 * GIB,
                fits=False,
                time=None,
                largest_batch=None,
                steps=(),
            ),
        ),
        front=(Point(run="r2", reserved_bytes=35 * GIB, time=ratio),),
        ways=(
            Way(
                gpus=4,
                nodes=1,
                title="ZeRO-3",
                choices=(Choice(name="zero3"),),
                ranks=(
                    RankPeak(rank=0, allocated_bytes=20 * GIB, reserved_bytes=21 * GIB, run="r3"),
                    RankPeak(rank=3, allocated_bytes=20 * GIB, reserved_bytes=20 * GIB, run="r4"),
                ),
                fits=True,
                communication_bytes=3 * GIB,
                exposed_seconds=0.0123,
                step_seconds=0.5,
                speed=0.9,
                link="pcie-4-x16",
                warning="slower than one GPU: 80% of the step waits for pcie-4-x16",
            ),
        ),
        shortage=None,
        proofs=(
            Proof(name="checkpoint", largest_difference=0.0, largest_value=1.5, copy="2 of 36 Block, float64"),
            Proof(name="fused_optimizer", largest_difference=None, largest_value=0, copy="", error="no float64"),
        ),
        runs=runs,
        measured=123,
        cached=20,
        seconds=45.6,
        interrupted=False,
    )


def short() -> AdviceReport:
    """Nothing fits."""
    report = advice()
    return replace(
        report,
        plans=report.plans[1:],
        shortage=Shortage(
            run="r0",
            reserved_bytes=45 * GIB,
            short_bytes=9 * GIB,
            filled_by={"parameters": 20 * GIB, "optimizer_state": 10 * GIB},
            gpu="h100-80",
            gpu_name="NVIDIA H100 80GB HBM3",
            gpus=4,
            gpus_run="r3",
        ),
        interrupted=True,
    )


def hostile() -> AdviceReport:
    """Every text of another's hand holds what a format could read as its own."""
    report = advice()
    effect = replace(report.effects[0], title=HOSTILE, reason="", risks=(HOSTILE,))
    return replace(
        report,
        target=HOSTILE,
        base=replace(report.base, target=HOSTILE),
        effects=(effect, replace(report.effects[2], reason=HOSTILE)),
        plans=(replace(report.plans[0], notes=(HOSTILE,)),),
        notes=(HOSTILE,),
    )


def _effect(name: str, title: str, tier: str, saved: int, reason: str, *, allowed: bool = True) -> Effect:
    return Effect(
        choice=Choice(name=name),
        title=title,
        tier=tier,
        allowed=allowed,
        change="change it",
        cost="one more forward",
        risks=("it may be slow",),
        run="r1",
        allocated_bytes=44 * GIB - saved,
        reserved_bytes=45 * GIB - saved,
        saved_bytes=saved,
        time=Ratio(value=1.2, low=1.1, high=1.3),
        reason=reason,
        code=CODE,
    )


def _step(choice: Choice, title: str, reserved: int, run: str, code: str) -> PlanStep:
    time = Ratio(value=1.08, low=1.03, high=1.13)
    return PlanStep(choice=choice, title=title, tier="speed", reserved_bytes=reserved, time=time, run=run, code=code)
