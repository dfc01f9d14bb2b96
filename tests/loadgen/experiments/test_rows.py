"""The headline of an experiment's report says no more than its checks do."""

from dataclasses import replace

import pytest

from lived_experiments import lived
from radixgate.analysis.experiments.balance_checks import Check
from radixgate.analysis.experiments.blocks import log_of
from radixgate.analysis.experiments.findings import findings_of
from radixgate.loadgen.experiments.rows import verdict

PASSED, FAILED = Check("passed", True, ""), Check("failed", False, "")
UNKNOWN = Check("unknown", True, "too few pairs to tell", checked=False)


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ([], "NOT CHECKED: there is nothing that could be"),
        ([PASSED], "VALID: every check passed"),
        ([PASSED, UNKNOWN], "VALID: 1 checks passed, 1 not checked"),
        ([UNKNOWN, UNKNOWN], "NOT CHECKED: too little was recorded for any of 2 checks"),
        ([UNKNOWN, FAILED], "INVALID: failed"),
    ],
)
def test_the_verdict_counts_what_was_checked(checks: list[Check], said: str) -> None:
    findings = replace(findings_of(log_of(lived())), checks=checks)
    assert verdict(findings) == said
