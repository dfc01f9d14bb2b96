"""Experiments in the metrics: those that run, and those that have lately."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from radixgate.gateway.experiments.known import Known
from radixgate.gateway.experiments.plan import Switches

_Sample = tuple[Sequence[str], float]


def experiment_metrics(experiments: Sequence[Known]) -> Iterator[Metric]:
    """Nothing of what was never started. Labels are names that admins gave, 64 at most."""
    begun = [known for known in experiments if known.acting or known.shadow]
    if not begun:
        return
    yield _gauge(
        "radixgate_experiment_state",
        "1 for the state an experiment is in",
        ("experiment", "kind", "state"),
        (((one.name, one.config.kind, one.state.value), 1.0) for one in begun),
    )
    yield _counter(
        "radixgate_experiment_dropped_lines",
        "Lines of requests that had no room in the records",
        ("experiment",),
        (((one.name,), float(_dropped(one))) for one in begun),
    )
    yield from _of_acting(begun)
    yield from _of_switchbacks(begun)
    yield from _of_shadows(begun)


def _of_acting(begun: Sequence[Known]) -> Iterator[Metric]:
    acting = [(one.name, one.acting) for one in begun if one.acting is not None]
    yield _counter(
        "radixgate_experiment_requests",
        "Requests that count, by arm and how they ended",
        ("experiment", "arm", "outcome"),
        (
            ((name, arm, outcome), float(count))
            for name, one in acting
            for (arm, outcome), count in one.logbook.requests.items()
        ),
    )
    yield _counter(
        "radixgate_experiment_washout_requests",
        "Requests that count for no arm",
        ("experiment", "arm"),
        (
            ((name, arm), float(count))
            for name, one in acting
            for arm, count in one.logbook.washout.items()
        ),
    )
    yield _counter(
        "radixgate_experiment_guardrail_trips",
        "Experiments that a guardrail has ended",
        ("experiment", "metric"),
        (((name, one.trip.guardrail.metric), 1.0) for name, one in acting if one.trip is not None),
    )


def _of_switchbacks(begun: Sequence[Known]) -> Iterator[Metric]:
    costs = [
        (one.name, one.acting.plan.switches)
        for one in begun
        if one.acting is not None and one.acting.plan.switches is not None
    ]
    shown: tuple[tuple[str, str, Callable[[Switches], float]], ...] = (
        ("switches", "Changes of the policy", lambda cost: cost.count),
        ("holds_capped", "Holds that ended before the fleet had drained", lambda cost: cost.capped),
        ("held_requests", "Requests that waited in a hold", lambda cost: cost.held_requests),
        ("held_seconds", "Seconds that they waited, summed", lambda cost: cost.held_s),
    )
    for name, help, read in shown:
        yield _counter(
            f"radixgate_experiment_{name}",
            help,
            ("experiment",),
            (((experiment,), float(read(cost))) for experiment, cost in costs),
        )


def _of_shadows(begun: Sequence[Known]) -> Iterator[Metric]:
    tallies = [(one.name, one.shadow.tally) for one in begun if one.shadow is not None]
    yield _counter(
        "radixgate_shadow_decisions",
        "Requests that a shadow has decided on",
        ("experiment",),
        (((name,), float(tally.decisions)) for name, tally in tallies),
    )
    yield _counter(
        "radixgate_shadow_agreements",
        "Decisions for the worker that was really chosen, on the shadow's own books and the real",
        ("experiment", "books"),
        (
            sample
            for name, tally in tallies
            for sample in (
                ((name, "own"), float(tally.agreed)),
                ((name, "actual"), float(tally.agreed_actual)),
            )
        ),
    )
    yield _counter(
        "radixgate_shadow_predicted_cached_tokens",
        "At the worker chosen: a is the live policy, b the shadow on its own books or the real",
        ("experiment", "arm"),
        (
            sample
            for name, tally in tallies
            for sample in (
                ((name, "a"), float(tally.cached_a)),
                ((name, "b"), float(tally.cached_b)),
                ((name, "b_actual"), float(tally.cached_b_actual)),
            )
        ),
    )
    yield _counter(
        "radixgate_shadow_imbalance_sum",
        "Uncached tokens in flight of the busiest worker over the mean, summed over decisions",
        ("experiment", "arm"),
        (
            sample
            for name, tally in tallies
            for sample in (((name, "a"), tally.imbalance_a), ((name, "b"), tally.imbalance_b))
        ),
    )


def _dropped(known: Known) -> int:
    run = known.acting or known.shadow
    return 0 if run is None else run.logbook.file.dropped


def _counter(
    name: str, help: str, labels: Sequence[str], samples: Iterator[_Sample]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, help, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _gauge(
    name: str, help: str, labels: Sequence[str], samples: Iterator[_Sample]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family
