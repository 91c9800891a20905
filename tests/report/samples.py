"""Reports made by hand, with figures like those of real runs, for tests of what reads reports."""

from __future__ import annotations

from dataclasses import replace

from vramdoc.report import (
    CATEGORIES,
    Assumption,
    Attribution,
    Block,
    Device,
    Limited,
    LineRow,
    ModuleRow,
    Peak,
    Phase,
    Report,
    TimelinePoint,
    Values,
)

MIB = 1024**2
GIB = 1024**3
PARAMETERS = 124_439_808 * 4  # GPT-2, fp32
HOSTILE = "<script>alert('x')</script> [red]&|`*_ \x1b[31m\nnext"


def gpt2() -> Report:
    """GPT-2 124M, 8 x 1024 tokens, AdamW: fits an A100 40 GB with room, exact."""
    categories = dict.fromkeys(CATEGORIES, 0) | {
        "parameters": PARAMETERS,
        "optimizer_state": 2 * PARAMETERS + 148 * 4,
        "activations": 9_871_294_464,
        "temporaries": 1_647_050_752,
        "autocast_cache": 248_879_616,
        "buffers": 12_582_912,
        "inputs": 131_072,
        "workspace": 33_554_432,
        "rounding": 1_437_184,
    }
    allocated = sum(categories.values())
    return Report(
        vramdoc_version="0.1.0",
        created="2026-01-02T03:04:05Z",
        target="sample_models/gpt2.py",
        device=Device(name="NVIDIA A100-SXM4-40GB", kind="null", total_bytes=42_298_834_944, compute_capability="8.0"),
        versions={"torch": "2.14.1+cu130", "cuda": "13.0", "cudnn": "9.20.0", "python": "3.11.2"},
        batch_size=8,
        steps=3,
        peak=Peak(
            allocated_bytes=allocated,
            reserved_bytes=allocated + 611 * MIB,
            context_bytes=443 * MIB,
            phase="loss",
            step=1,
        ),
        categories=categories,
        phases=(
            Phase(name="load", peak_bytes=PARAMETERS + 12 * MIB, end_bytes=PARAMETERS + 12 * MIB),
            Phase(name="forward", peak_bytes=allocated - 2 * GIB, end_bytes=allocated - 3 * GIB),
            Phase(name="loss", peak_bytes=allocated, end_bytes=allocated - 1 * GIB),
            Phase(name="backward", peak_bytes=allocated - 90 * MIB, end_bytes=4 * PARAMETERS + 80 * MIB),
            Phase(name="optimizer", peak_bytes=5 * PARAMETERS, end_bytes=4 * PARAMETERS + 80 * MIB),
            Phase(name="after_step", peak_bytes=4 * PARAMETERS, end_bytes=3 * PARAMETERS),
        ),
        growth_bytes_per_step=0,
        modules=_gpt2_modules(),
        lines=(
            LineRow(
                file="sample_models/gpt2.py",
                line=41,
                function="forward",
                code="y = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
                bytes=3_120_562_176,
                blocks=24,
            ),
            LineRow(
                file="sample_models/gpt2.py",
                line=57,
                function="forward",
                code="return self.c_proj(self.gelu(self.c_fc(x)))",
                bytes=2_416_181_248,
                blocks=36,
            ),
            LineRow(
                file="sample_models/gpt2.py",
                line=96,
                function="compute_loss",
                code="return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))",
                bytes=1_647_050_752,
                blocks=1,
            ),
            LineRow(
                file="/opt/venv/lib/python3.11/site-packages/torch/optim/adamw.py",
                line=91,
                function="_init_group",
                code="",
                bytes=2 * PARAMETERS,
                blocks=296,
            ),
        ),
        largest=(
            Block(
                bytes=1_647_050_752,
                category="temporaries",
                phase="loss",
                op="aten._log_softmax",
                module="",
                file="sample_models/gpt2.py",
                line=96,
            ),
            Block(
                bytes=823_525_376,
                category="activations",
                phase="forward",
                op="aten.mm",
                module="lm_head",
                file="sample_models/gpt2.py",
                line=88,
            ),
            Block(
                bytes=154_389_504,
                category="parameters",
                phase="load",
                op="",
                module="transformer.wte",
                file="",
                line=0,
            ),
        ),
        timeline=_gpt2_timeline(categories),
        attribution=Attribution(allocated_bytes=allocated + 4096, agrees=True),
        values=Values(exact=True, shadowed=False),
        fits=True,
        alloc_retries=0,
    )


def too_big() -> Report:
    """The same step at batch 32 on a GPU of 24 GB: does not fit, with torch's message."""
    report = _scaled(gpt2(), 3)
    return replace(
        report,
        target="sample_models/too_big.py",
        batch_size=32,
        device=Device(
            name="NVIDIA GeForce RTX 4090", kind="null", total_bytes=25_262_096_384, compute_capability="8.9"
        ),
        fits=False,
        limited=Limited(
            completed=False,
            alloc_retries=1,
            reserved_bytes=23_985_127_424,
            out_of_memory="CUDA out of memory. Tried to allocate 6.13 GiB. GPU 0 has a total capacity of 23.53 GiB "
            "of which 812.44 MiB is free. Process 7 has 22.73 GiB memory in use. Of the allocated memory 21.9 GiB "
            "is allocated by PyTorch, and 301.00 MiB is reserved by PyTorch but unallocated.",
            phase="loss",
        ),
    )


def squeezed() -> Report:
    """Over the GPU's total without a limit; with it the allocator frees its cache and completes."""
    report = gpt2()
    total = report.device_bytes - 200 * MIB
    return replace(
        report,
        device=replace(report.device, total_bytes=total),
        alloc_retries=2,
        limited=Limited(
            completed=True,
            alloc_retries=2,
            reserved_bytes=total - 500 * MIB,
            out_of_memory="",
            phase="",
        ),
    )


def assumed() -> Report:
    """A mixture of experts whose routing is not known: two assumptions and a range."""
    report = gpt2()
    return replace(
        report,
        target="moe.py",
        values=Values(
            exact=False,
            shadowed=True,
            assumptions=(
                Assumption(op="aten.nonzero", file="moe.py", line=31, rule="routing", reads=24),
                Assumption(op="aten.all", file="moe.py", line=58, rule="finite", reads=3),
            ),
            low_bytes=report.peak.allocated_bytes - 512 * MIB,
            high_bytes=report.peak.allocated_bytes + 3 * GIB,
        ),
    )


def leaky() -> Report:
    """Keeps its losses: grows by 1.5 GiB a step, measured on a real GPU, and the passes disagree."""
    report = gpt2()
    return replace(
        report,
        target="sample_models/leaky.py",
        device=replace(report.device, kind="real"),
        versions=report.versions | {"driver": "580.65.06"},
        growth_bytes_per_step=3 * GIB // 2,
        attribution=Attribution(allocated_bytes=report.peak.allocated_bytes + 300 * MIB, agrees=False),
        warnings=("the peak still rose in the last step; --steps 8 measures more",),
        step_seconds=0.2471,
    )


def hostile() -> Report:
    """Markup, control characters and line ends in every text that a report carries."""
    report = gpt2()
    return replace(
        report,
        target=f"{HOSTILE}.py",
        device=replace(report.device, name=f"GPU {HOSTILE}"),
        versions=report.versions | {HOSTILE: HOSTILE},
        modules=(*report.modules, replace(report.modules[0], name=HOSTILE, class_name=HOSTILE)),
        lines=(replace(report.lines[0], file=HOSTILE, function=HOSTILE, code=HOSTILE),),
        largest=(replace(report.largest[0], op=HOSTILE, module=HOSTILE, file=HOSTILE),),
        values=Values(
            exact=False,
            shadowed=True,
            assumptions=(Assumption(op=HOSTILE, file=HOSTILE, line=1, rule=HOSTILE, reads=1),),
        ),
        fits=False,
        limited=Limited(completed=False, alloc_retries=0, reserved_bytes=0, out_of_memory=HOSTILE, phase=HOSTILE),
        warnings=(HOSTILE,),
    )


def every() -> dict[str, Report]:
    """All samples by name."""
    samples = (gpt2, too_big, squeezed, assumed, leaky, hostile)
    return {sample.__name__: sample() for sample in samples}


def module_row(
    name: str, class_name: str, parameters: int, activations: int, gradients: int = 0, other: int = 0
) -> ModuleRow:
    """A row whose optimizer state is Adam's: twice the parameters."""
    return ModuleRow(
        name=name,
        class_name=class_name,
        parameter_bytes=parameters,
        gradient_bytes=gradients,
        optimizer_state_bytes=2 * parameters,
        activation_bytes=activations,
        other_bytes=other,
        total_bytes=3 * parameters + gradients + activations + other,
    )


def _gpt2_modules() -> tuple[ModuleRow, ...]:
    block, attention, mlp = 28_351_488, 9_451_520, 18_887_680
    rows = [
        module_row("", "GPT", PARAMETERS, 9_871_294_464, other=261_593_600),
        module_row("transformer", "ModuleDict", PARAMETERS, 9_047_769_088, other=261_593_600),
        module_row("transformer.wte", "Embedding", 154_389_504, 25_165_824),
        module_row("transformer.wpe", "Embedding", 3_145_728, 25_165_824),
        module_row("transformer.h", "ModuleList", 12 * block, 12 * 748_689_408, other=12 * 21_799_466),
    ]
    for index in range(12):
        name = f"transformer.h.{index}"
        rows += [
            module_row(name, "Block", block, 748_689_408, other=21_799_466),
            module_row(f"{name}.ln_1", "LayerNorm", 6_144, 25_231_360),
            module_row(f"{name}.attn", "CausalSelfAttention", attention, 260_046_848, other=7_266_488),
            module_row(f"{name}.ln_2", "LayerNorm", 6_144, 25_231_360),
            module_row(f"{name}.mlp", "MLP", mlp, 438_179_840, other=14_532_978),
        ]
    rows += [
        module_row("transformer.ln_f", "LayerNorm", 6_144, 25_231_360),
        module_row("lm_head", "Linear", 0, 823_525_376),
    ]
    return tuple(rows)


def _gpt2_timeline(categories: dict[str, int]) -> tuple[TimelinePoint, ...]:
    """A forward that climbs to the peak, a loss at it, a backward that falls, an optimizer with a bump."""
    points = []
    resident = {name: categories[name] for name in ("parameters", "optimizer_state", "buffers", "workspace")}
    activations = categories["activations"]

    def add(phase: str, **sizes: int) -> None:
        sizes = dict.fromkeys(CATEGORIES, 0) | resident | sizes
        points.append(TimelinePoint(phase=phase, allocated_bytes=sum(sizes.values()), categories=sizes))

    for step in range(60):
        temporaries = categories["temporaries"] // 6 if step % 5 == 4 else 0
        add("forward", activations=activations * (step + 1) // 60, temporaries=temporaries)
    points.append(TimelinePoint(phase="loss", allocated_bytes=sum(categories.values()), categories=categories))
    for step in range(80):
        add(
            "backward",
            activations=activations * (79 - step) // 80,
            gradients=PARAMETERS * (step + 1) // 80,
            temporaries=categories["temporaries"] if step < 3 else 120 * MIB * (step % 3),
        )
    for step in range(14):
        add("optimizer", gradients=PARAMETERS, optimizer_temporaries=PARAMETERS * min(step, 7) // 7)
    add("after_step")
    return tuple(points)


def _scaled(report: Report, factor: int) -> Report:
    """Every size of ``report``, but for the device's, ``factor`` times as large."""
    return replace(
        report,
        peak=replace(
            report.peak,
            allocated_bytes=factor * report.peak.allocated_bytes,
            reserved_bytes=factor * report.peak.reserved_bytes,
        ),
        categories={name: factor * size for name, size in report.categories.items()},
        phases=tuple(
            replace(phase, peak_bytes=factor * phase.peak_bytes, end_bytes=factor * phase.end_bytes)
            for phase in report.phases
        ),
        lines=tuple(replace(line, bytes=factor * line.bytes) for line in report.lines),
        largest=tuple(replace(block, bytes=factor * block.bytes) for block in report.largest),
        modules=tuple(
            replace(
                row,
                **{
                    field: factor * getattr(row, field)
                    for field in row.__dataclass_fields__
                    if field.endswith("_bytes")
                },
            )
            for row in report.modules
        ),
        timeline=tuple(
            replace(
                point,
                allocated_bytes=factor * point.allocated_bytes,
                categories={name: factor * size for name, size in point.categories.items()},
            )
            for point in report.timeline
        ),
        attribution=replace(report.attribution, allocated_bytes=factor * report.attribution.allocated_bytes),
    )
