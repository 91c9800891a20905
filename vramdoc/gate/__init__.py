"""Budgets, baselines and findings: does a training step still need no more memory than it may?"""

from vramdoc.analysis.footprint import Footprint, footprint
from vramdoc.gate.amounts import METRICS, parse_limit, parse_metric, parse_tolerance
from vramdoc.gate.evaluate import evaluate
from vramdoc.gate.model import (
    Advisor,
    Amount,
    Budget,
    Checked,
    CheckResult,
    Fault,
    Finding,
    LineBlame,
    Metric,
    ModuleBlame,
    Tolerance,
    no_advice,
)

__all__ = [
    "METRICS",
    "Advisor",
    "Amount",
    "Budget",
    "CheckResult",
    "Checked",
    "Fault",
    "Finding",
    "Footprint",
    "LineBlame",
    "Metric",
    "ModuleBlame",
    "Tolerance",
    "evaluate",
    "footprint",
    "no_advice",
    "parse_limit",
    "parse_metric",
    "parse_tolerance",
]
