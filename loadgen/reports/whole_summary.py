"""Everything that is known of a run, worked out from what was recorded of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from radixgate.analysis.balance import FleetBalance, fleet_balance
from radixgate.analysis.cache_bound import CacheUse, cache_use
from radixgate.analysis.figures import Adjusted, Figure, adjusted_of, figures_of
from radixgate.analysis.slo import Attainment
from radixgate.analysis.summary import Summary, summarise
from radixgate.analysis.validity import Verdict, judge
from radixgate.analysis.window import Window, steady_window
from radixgate.loadgen.reports.run_folder import Run


@dataclass(frozen=True, slots=True)
class WholeSummary:
    """The content of every report of a run."""

    verdict: Verdict
    offered: int
    completed: int
    abandoned: int
    failures: Mapping[str, int]
    classic: Summary  # over the whole run
    steady: Window | None
    figures: Sequence[Figure]  # an open loop's response figures first; over the whole run
    adjusted: Sequence[Adjusted]
    attainment: Attainment | None  # None: no objective was given
    cache: CacheUse
    fleet: FleetBalance


def whole_summary(run: Run) -> WholeSummary:
    """Pure: the same folder gives the same summary."""
    config, records = run.info.bench, run.records
    classic = summarise(records)
    slo = config.objective
    return WholeSummary(
        verdict=judge(
            records,
            run.info.clients,
            open_loop=config.open_loop,
            max_concurrency=config.max_concurrency,
        ),
        offered=classic.offered,
        completed=classic.completed,
        abandoned=classic.abandoned,
        failures=classic.failures,
        classic=classic,
        steady=steady_window(records, open_loop=config.open_loop),
        figures=figures_of(records, open_loop=config.open_loop),
        adjusted=adjusted_of(records, open_loop=config.open_loop),
        attainment=None if slo is None else slo.attainment(records, classic.duration_s),
        cache=cache_use(records),
        fleet=fleet_balance(records, run.polls),
    )
