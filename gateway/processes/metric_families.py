"""The metrics of several processes as those of one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from msgspec import structs
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from radixgate.gateway.processes.messages import Family, Kind, Sample

_KINDS: Mapping[str, Kind] = {"counter": "counter", "gauge": "gauge", "histogram": "histogram"}
# What every process knows by itself of a worker is not to be added up.
_ABOUT_WORKERS = ("radixgate_worker_", "radixgate_mirror_")

_Key = tuple[str, tuple[tuple[str, str], ...]]


def families_of(metrics: Iterable[Metric]) -> list[Family]:
    """As they can be sent."""
    return [
        Family(
            metric.name,
            _KINDS[metric.type],
            metric.documentation,
            [Sample(one.name, dict(one.labels), float(one.value)) for one in metric.samples],
        )
        for metric in metrics
    ]


def summed(own: Sequence[Family], others: Iterable[Sequence[Family]]) -> list[Family]:
    """Counters, histograms and gauges added up; of gauges about workers, our own stand."""
    families = {family.name: family for family in own}
    totals: dict[str, dict[_Key, float]] = {
        family.name: {_key(sample): sample.value for sample in family.samples} for family in own
    }
    for family in (family for theirs in others for family in theirs):
        families.setdefault(family.name, family)
        into = totals.setdefault(family.name, {})
        if _is_about_workers(family):
            continue
        for sample in family.samples:
            key = _key(sample)
            into[key] = into.get(key, 0.0) + sample.value
    return [
        Family(name, family.kind, family.help, _samples(totals[name]))
        for name, family in families.items()
    ]


def about_workers(families: Iterable[Family]) -> list[Family]:
    """What the process that checks the workers knows best."""
    return [family for family in families if _is_about_workers(family)]


def of_present(families: Iterable[Family], workers: Set[str]) -> list[Family]:
    """Without the series of workers that have left."""
    return [
        structs.replace(
            family,
            samples=[one for one in family.samples if one.labels.get("worker", "") in workers]
            if any("worker" in one.labels for one in family.samples)
            else family.samples,
        )
        for family in families
    ]


def lasting(families: Iterable[Family]) -> list[Family]:
    """What stays when a process is gone: how often things have happened."""
    return [family for family in families if family.kind != "gauge"]


def exposition(families: Sequence[Family]) -> bytes:
    """The text that a Prometheus server scrapes."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(lambda: families))
    return generate_latest(registry)


class _Collected(Collector):
    def __init__(self, read: Callable[[], Sequence[Family]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        for family in self._read():
            metric = Metric(family.name, family.help, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, dict(sample.labels), sample.value)
            yield metric


def _is_about_workers(family: Family) -> bool:
    return family.kind == "gauge" and family.name.startswith(_ABOUT_WORKERS)


def _key(sample: Sample) -> _Key:
    return sample.name, tuple(sorted(sample.labels.items()))


def _samples(totals: Mapping[_Key, float]) -> list[Sample]:
    return [Sample(name, dict(labels), value) for (name, labels), value in totals.items()]
