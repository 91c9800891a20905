"""Budgets, baselines and findings: does a training step still need no more memory than it may?"""

from vramdoc.analysis.footprint import Footprint, footprint
from vramdoc.gate.amounts import METRICS, parse_limit, parse_metric, parse_tolerance
from vramdoc.gate.baseline import Baseline, encode_baseline, read_baseline
from vramdoc.gate.evaluate import evaluate
from vramdoc.gate.model import Advisor, Amount, Budget, Tolerance, no_advice
from vramdoc.gate.run import Conditions, Job, check, outcomes_of, read_report, require_something, run_checks
from vramdoc.report.findings import Checked, CheckResult, Fault, Finding, LineBlame, Metric, ModuleBlame

__all__ = [
    "METRICS",
    "Advisor",
    "Amount",
    "Baseline",
    "Budget",
    "CheckResult",
    "Checked",
    "Conditions",
    "Fault",
    "Finding",
    "Footprint",
    "Job",
    "LineBlame",
    "Metric",
    "ModuleBlame",
    "Tolerance",
    "check",
    "encode_baseline",
    "evaluate",
    "footprint",
    "no_advice",
    "outcomes_of",
    "parse_limit",
    "parse_metric",
    "parse_tolerance",
    "read_baseline",
    "read_report",
    "require_something",
    "run_checks",
]
