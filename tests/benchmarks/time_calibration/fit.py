"""Fits the constants of the time model to the published pairs: coordinate descent, held near what is physical."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from tests.advise.cost.calibration import DATA, Pair, Side, by_kind, load, median_error, outcomes
from vramdoc.advise.cost import TimeEstimate
from vramdoc.advise.cost.efficiencies import Efficiencies, calibrated
from vramdoc.advise.cost.step import share_shift

FITTED: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "products": {"half_depth": (16, 128), "fp32": (0.7, 0.95), "tf32": (0.5, 1.0)},
    "tensor_cores": {"Volta": (0.6, 0.95), "halved": (0.95, 1.15)},
    "convolutions": {
        **{"dense": (0.4, 1.0), "dense_fp32": (0.6, 1.3), "dense_tf32": (0.4, 1.0), "layout_passes": (1.0, 3.0)},
        **{"grouped_first": (0.03, 0.3), "grouped_last": (0.01, 0.1), "depthwise": (0.1, 0.6)},
    },
    "attention": {"flash": (0.4, 0.75)},
    "memory": {"elementwise": (0.65, 0.92), "reduction": (0.5, 0.9), "cached": (0.0, 3.0)},
    "launch": {"kernel_seconds": (1e-6, 4e-6)},
    "host": {"operation_seconds": (3e-6, 2e-5)},
    "links": {"ring": (0.5, 0.9), "contention": (0.0, 0.4), "imbalance": (0.0, 0.03)},
}
"""The constants that the pairs decide, and between which values each is physical; the others are set from sources."""
_STEPS = (0.25, 0.1, 0.04)
_PULL = 0.01  # of a constant towards where it began: a factor of e costs as much as 1 % on every pair
_ABSOLUTE = 0.2  # weight of the steps' own times beside their ratios
_PER_SECOND = ("img/s", "seq/s", "vol/s")
_SECONDS = ("s/batch",)
_RATIO_DEVIATION = 0.03  # of any ratio: two runs of one program differ by as much
_DEVIATIONS = tuple(0.05 * 1.1**i for i in range(40))


def fit(pairs: Sequence[Pair], sweeps: int = 2) -> dict[str, dict[str, float]]:
    """The fitted constants by section; begins in the middle of what is physical."""
    begun = best = with_constants(
        {section: {n: (low + high) / 2 for n, (low, high) in names.items()} for section, names in FITTED.items()}
    )
    score = _score(pairs, best, begun)
    for step in _STEPS:
        for _ in range(sweeps):
            for section, names in FITTED.items():
                for name in names:
                    for factor in (math.exp(step), math.exp(-step)):
                        tried = _scaled(best, section, name, factor)
                        value = _score(pairs, tried, begun)
                        if value < score:
                            best, score = tried, value
                            break
            print(f"step {step}: score {score:.4f}", file=sys.stderr, flush=True)
    return {
        section: {name: float(f"{getattr(best, section)[name]:.3g}") for name in names}
        for section, names in FITTED.items()
    }


def fit_errors(pairs: Sequence[Pair], efficiencies: Efficiencies) -> dict[str, float]:
    """The standard deviations of ``[error]``: the likeliest for the ratios' errors, then widened to hold 80 %."""
    rows = []
    for pair in pairs:
        before, after = pair.before.estimate(efficiencies), pair.after.estimate(efficiencies)
        modelled = after.seconds / before.seconds * pair.before.samples / pair.after.samples
        rows.append((abs(math.log(modelled * pair.speedup)), share_shift(before, after)))

    def deviations(part: float) -> list[tuple[float, float]]:
        return [(error, math.hypot(_RATIO_DEVIATION, part * shift)) for error, shift in rows]

    # Laplace's distribution: a few pairs are far off, and they shall not widen all the others.
    part = min(_DEVIATIONS, key=lambda guess: sum(math.log(d) + error / d for error, d in deviations(guess)))
    widened = _four_of_five(error / d for error, d in deviations(part))
    errors = absolute_errors(pairs, efficiencies).values()
    found = {"part": part * widened, "ratio": _RATIO_DEVIATION * widened}
    found["step"] = _four_of_five(abs(math.log1p(error)) for error in errors)
    return {name: float(f"{value:.2g}") for name, value in found.items()}


def _four_of_five(sizes: Iterable[float]) -> float:
    """The standard deviation of a normal distribution that has four of five of them within."""
    ordered = sorted(sizes)
    return ordered[math.ceil(0.8 * len(ordered)) - 1] / 1.2816


def with_constants(constants: Mapping[str, Mapping[str, float]]) -> Efficiencies:
    """The shipped constants with some replaced."""
    base = calibrated()
    return replace(base, **{name: {**getattr(base, name), **values} for name, values in constants.items()})


def leave_out(pairs: Sequence[Pair], least: int = 5) -> Iterator[str]:
    """Fits without each kind of change in turn: the error on the kind that was left out."""
    kinds = {kind: rows for kind, rows in by_kind(outcomes(pairs)).items() if len(rows) >= least}
    with ProcessPoolExecutor(2) as pool:
        for (kind, rows), error in zip(kinds.items(), pool.map(_left_out, kinds), strict=True):
            yield f"{kind:24} fitted with it {median_error(rows):6.1%}, without it {error:6.1%}"


def _left_out(kind: str) -> float:
    constants = with_constants(fit([pair for pair in load() if pair.kind != kind], sweeps=1))
    return median_error(outcomes([pair for pair in load() if pair.kind == kind], constants))


def _scaled(efficiencies: Efficiencies, section: str, name: str, factor: float) -> Efficiencies:
    values = dict(getattr(efficiencies, section))
    low, high = FITTED[section][name]
    values[name] = min(max(values[name] * factor, low), high)
    return replace(efficiencies, **{section: values})


def _score(pairs: Sequence[Pair], efficiencies: Efficiencies, begun: Efficiencies) -> float:
    """Mean error over the kinds of change, a kind of few pairs for less; large errors count by their square root."""
    estimates: dict[Side, TimeEstimate] = {}
    ratios: dict[str, list[float]] = {}
    absolute: list[float] = []
    published = _published()
    for pair in pairs:
        for side in (pair.before, pair.after):
            if side not in estimates:
                estimates[side] = side.estimate(efficiencies)
        before, after = estimates[pair.before].seconds, estimates[pair.after].seconds
        modelled = after / before * pair.before.samples / pair.after.samples
        ratios.setdefault(pair.kind, []).append(_size(math.log(modelled * pair.speedup)))
        if pair.name in published:
            absolute.append(_size(math.log(before / (pair.before.samples / published[pair.name]))))
    weights = {kind: min(1.0, len(errors) / 5) for kind, errors in ratios.items()}
    mean = sum(weights[k] * sum(errors) / len(errors) for k, errors in ratios.items()) / sum(weights.values())
    return mean + _ABSOLUTE * sum(absolute) / max(1, len(absolute)) + _pull(efficiencies, begun)


def _size(error: float) -> float:
    """Absolute for most, less for outliers: a pair that was measured otherwise than it says must not lead."""
    return abs(error) if abs(error) < 0.25 else 0.5 * math.sqrt(abs(error))


def _pull(efficiencies: Efficiencies, begun: Efficiencies) -> float:
    moved = [
        math.log((getattr(efficiencies, section)[name] + 1e-9) / (getattr(begun, section)[name] + 1e-9)) ** 2
        for section, names in FITTED.items()
        for name in names
    ]
    return _PULL * sum(moved) / len(moved)


def _published() -> dict[str, float]:
    """Samples a second of one GPU before the change, where samples are what the recipes count."""
    pairs = json.loads((DATA / "timings.json").read_text())["pairs"]
    rates = {p["pair"]: p["A"] / p["n_gpus"][0] for p in pairs if p["unit"] in _PER_SECOND}
    return rates | {p["pair"]: p["batch_per_gpu"][0] / p["A"] for p in pairs if p["unit"] in _SECONDS}


def absolute_errors(pairs: Iterable[Pair], efficiencies: Efficiencies | None = None) -> dict[str, float]:
    """By how much the modelled time of the first side is off, where it was published."""
    published = _published()
    return {
        pair.name: pair.before.estimate(efficiencies).seconds / (pair.before.samples / published[pair.name]) - 1
        for pair in pairs
        if pair.name in published
    }
