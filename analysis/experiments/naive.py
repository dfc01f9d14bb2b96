"""The test that must not be used: requests taken one by one, as if they were independent."""

from collections.abc import Sequence

from scipy import stats


def welch_on_requests(a: Sequence[float], b: Sequence[float]) -> float:
    """p-value of Welch's t over requests.

    Requests of a block share its queues and caches, so they say the same thing many times over,
    and under this test arms that are alike differ far more often than in one case of twenty. It is
    here to be shown failing. 1 where an arm has fewer than two requests.
    """
    if len(a) < 2 or len(b) < 2:
        return 1.0
    return float(stats.ttest_ind(a, b, equal_var=False).pvalue)
