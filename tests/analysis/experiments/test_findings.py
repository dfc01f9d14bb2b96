"""Known effects are found again, spoilt experiments are told, and nothing else is."""

import math

import msgspec
import pytest

from lived_experiments import DECLARED, declared, lived, log
from radixgate.analysis.experiments.balance_checks import sample_ratio_p, switchback_checks
from radixgate.analysis.experiments.blocks import lived_blocks, pairs_of
from radixgate.analysis.experiments.carry_over import carry_over
from radixgate.analysis.experiments.effects import effect_of, holm
from radixgate.analysis.experiments.findings import findings_of
from radixgate.analysis.experiments.metrics import METRICS, metrics_of
from radixgate.analysis.experiments.records import (
    ExperimentEnd,
    GuardrailTrip,
    Record,
    RequestLine,
    Schedule,
)

TTFT = METRICS["ttft_mean"]


def line(at: float, **told: object) -> RequestLine:
    base = RequestLine("spread", 0, "near", False, at, "ok")
    return msgspec.structs.replace(base, **told)


def test_metrics_by_hand() -> None:
    requests = [
        line(0.0, ttft_s=0.1, e2e_s=1.0, prompt_tokens=100, cached_tokens=50, worker="w0"),
        line(1.0, ttft_s=0.3, e2e_s=2.0, prompt_tokens=300, cached_tokens=0, worker="w1"),
        line(2.0, outcome="failed", ttft_s=9.0),
        line(3.0, outcome="aborted", ttft_s=9.0),
        line(4.0, outcome="rejected"),
    ]
    found = {name: metric.of(requests) for name, metric in METRICS.items()}
    assert found["ttft_mean"] == pytest.approx(0.2)
    assert found["ttft_p50"] == pytest.approx(0.2)
    assert found["e2e_mean"] == 1.5
    assert found["tpot_mean"] is None
    assert found["hit_rate"] == 50 / 400
    assert found["imbalance"] == 300 / 175
    assert found["error_share"] == 2 / 4
    bounded = declared(metrics=("attainment",), slo_ttft_s=0.2)
    assert metrics_of(bounded)[0].of(requests) == 1 / 4


def test_an_effect_is_of_pairs_whatever_the_number_of_requests() -> None:
    records = lived(factor=1.5, noise=0.02, requests=200)
    pairs, dropped = pairs_of(log(records))
    assert (len(pairs), dropped) == (12, [])
    effect = effect_of(pairs, TTFT, 20.0)
    assert effect is not None
    assert effect.relative == pytest.approx(0.5, abs=0.06)
    assert effect.difference == pytest.approx(0.5 * effect.a, rel=0.15)
    assert effect.test.p == 2 / 2**12
    interval = effect.relative_interval
    assert interval is not None
    assert interval.low < 0.5 < interval.high


def test_shares_have_differences_and_no_ratio() -> None:
    pairs, _ = pairs_of(log(lived()))
    effect = effect_of(pairs, METRICS["hit_rate"], 20.0)
    assert effect is not None
    assert effect.relative is None
    assert effect.relative_interval is None
    assert effect.difference == pytest.approx(effect.test.estimate)


def test_a_metric_that_no_request_has_is_no_finding() -> None:
    records = [
        msgspec.structs.replace(r, tpot_s=None) if isinstance(r, RequestLine) else r
        for r in lived(declared(metrics=("ttft_mean", "tpot_mean")))
    ]
    assert [metric.name for metric in findings_of(log(records)).metrics] == ["ttft_mean"]


def test_a_request_belongs_to_the_block_of_its_dispatch() -> None:
    """Dispatched a millisecond before the next block, it ends long after."""
    records = lived()
    block = next(r for r in records if isinstance(r, Schedule)).blocks[0]
    late = line(block.ends_s - 0.001, arm=block.arm, ttft_s=0.5, e2e_s=50.0)
    found = log([*records, late])
    first = lived_blocks(found)[0]
    assert first.requests[-1] == late
    assert late in first.kept(20.0)
    assert all(
        check.ok
        for check in switchback_checks(found, lived_blocks(found), [])
        if "arms" in check.name
    )


def test_a_pair_in_which_the_weights_changed_is_left_out() -> None:
    records = lived()
    kept = [n for n, r in enumerate(records) if isinstance(r, RequestLine) and not r.washout]
    for place, version in ((kept[0], "7"), (kept[1], "8")):
        records[place] = msgspec.structs.replace(records[place], weights=version, worker="w9")
    pairs, dropped = pairs_of(log(records))
    assert len(pairs) == 11
    assert dropped == ["pair 0: worker w9 ran on weights 7, 8"]


def test_workers_of_different_models_are_no_change_of_weights() -> None:
    records = [
        msgspec.structs.replace(r, weights=r.worker) if isinstance(r, RequestLine) else r
        for r in lived()
    ]
    assert len(pairs_of(log(records))[0]) == 12


def test_what_slips_through_a_hold_counts_for_nothing_and_is_no_fault() -> None:
    slipped = line(100.5, block=-1, washout=True, ttft_s=60.0)
    found = findings_of(log([*lived(), slipped]))
    assert found.valid
    assert "1 sent during holds" in str(found.checks)
    assert found.metrics == findings_of(log(lived())).metrics
    astray = line(100.5, block=-1, washout=False)
    assert not findings_of(log([*lived(), astray])).valid


def test_load_is_counted_in_sessions_and_not_in_requests() -> None:
    """B answers sooner, so each session sends it twice as many requests: no fault of the coins."""
    doubled = [
        msgspec.structs.replace(r, t_dispatch_s=r.t_dispatch_s + 1e-6)
        for r in lived()
        if isinstance(r, RequestLine) and r.arm == "even"
    ]
    (check,) = [c for c in findings_of(log([*lived(), *doubled])).checks if "offered" in c.name]
    assert check.ok
    strangers = [msgspec.structs.replace(r, unit=n) for n, r in enumerate(doubled)]
    (check,) = [c for c in findings_of(log([*lived(), *strangers])).checks if "offered" in c.name]
    assert not check.ok
    assert "+100.0% units/s" in check.detail


@pytest.mark.slow
def test_carry_over_is_suspected_where_it_is_and_not_where_it_is_not() -> None:
    def suspected(carried: float, washout_s: float, seed: int) -> bool:
        told = declared(washout_s=washout_s, seed=seed)
        pairs, _ = pairs_of(log(lived(told, carried=carried, seed=seed, noise=0.03)))
        found = carry_over(pairs, TTFT, washout_s)
        assert found is not None
        return found.suspected

    # Each block begins half as high again as it ends; the arms pull in opposite directions.
    def one_sided(seed: int) -> bool:
        told = declared(washout_s=0.0, seed=seed)
        records = [
            msgspec.structs.replace(r, ttft_s=(r.ttft_s or 0) * (3.0 if early(r) else 1.0))
            if isinstance(r, RequestLine)
            else r
            for r in lived(told, seed=seed, noise=0.03)
        ]
        pairs, _ = pairs_of(log(records))
        found = carry_over(pairs, TTFT, 0.0)
        assert found is not None
        return found.suspected

    def early(request: RequestLine) -> bool:
        return request.arm == "even" and request.t_dispatch_s % 100.0 < 30.0

    assert all(one_sided(seed) for seed in range(5))
    assert sum(suspected(0.0, 20.0, seed) for seed in range(40)) <= 4


def test_the_twice_longer_washout_moves_an_estimate_that_carries_over() -> None:
    told = declared(washout_s=10.0)
    pairs, _ = pairs_of(log(lived(told, carried=1.0, noise=0.01, requests=400)))
    found = carry_over(pairs, TTFT, 10.0)
    assert found is not None
    assert found.estimate_twice is not None
    assert found.drift is not None


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_an_early_stop_is_read_by_the_confidence_sequence() -> None:
    records: list[Record] = [r for r in lived() if not isinstance(r, ExperimentEnd)]
    records.append(GuardrailTrip("spread", 2_300.0, 22, "slow", "ttft_p99", 3.0, 1.5, 200))
    records.append(ExperimentEnd("spread", 2_300.0, "guardrail"))
    found = findings_of(log(records))
    assert found.use_sequence
    assert found.trips[0].value == 3.0
    assert [peek.pairs for peek in found.metrics[0].peeks] == [10, 11, 12]
    assert not findings_of(log(lived())).use_sequence


def test_what_a_switch_cost_is_summed() -> None:
    switches = findings_of(log(lived())).switches
    assert (switches.switches, switches.drained, switches.capped) == (23, 23, 0)
    assert switches.held_requests == 3 * 23
    assert switches.held_s == 2.5 * 23
    assert switches.forgotten == 24 * 100


def test_a_schedule_changed_after_the_start_is_found() -> None:
    records = lived()
    schedule = next(r for r in records if isinstance(r, Schedule))
    swapped = msgspec.structs.replace(
        schedule, blocks=(*schedule.blocks[:-2], schedule.blocks[-1], schedule.blocks[-2])
    )
    found = findings_of(log([swapped if r is schedule else r for r in records]))
    assert not found.valid
    assert next(check.name for check in found.checks if not check.ok) == "schedule as committed"


def test_traffic_that_differs_between_the_arms_is_found() -> None:
    records = [
        msgspec.structs.replace(r, prompt_tokens=(r.prompt_tokens or 0) + 300)
        if isinstance(r, RequestLine) and r.arm == "even"
        else r
        for r in lived()
    ]
    assert [c.name for c in findings_of(log(records)).checks if not c.ok] == ["prompt tokens"]


@pytest.mark.parametrize(
    ("in_a", "in_b", "alarm"),
    [
        pytest.param(5_000, 5_000, False, id="as-meant"),
        pytest.param(5_100, 4_900, False, id="by-chance"),
        pytest.param(5_300, 4_700, True, id="three-of-a-hundred-amiss"),
    ],
)
def test_sample_ratio(in_a: int, in_b: int, alarm: bool) -> None:
    p = sample_ratio_p(in_a, in_b, 0.5)
    expected = math.erfc(abs(in_a - in_b) / math.sqrt(2 * (in_a + in_b)))
    assert p == pytest.approx(expected)
    assert (p < 0.001) is alarm


@pytest.mark.slow
def test_sound_experiments_are_valid() -> None:
    found = [findings_of(log(lived(declared(seed=n), seed=n))) for n in range(20)]
    assert sum(not one.valid for one in found) == 0
    assert DECLARED.metrics == ()


@pytest.mark.parametrize(
    ("records", "valid"),
    [
        pytest.param(lived(), True, id="checked"),
        pytest.param([*lived(), line(100.5, block=-1)], False, id="one-failed"),
        pytest.param([declared(kind="canary", pairs=0)], None, id="too-little-for-any"),
        pytest.param([declared(kind="shadow", pairs=0)], None, id="none-of-this-kind"),
    ],
)
def test_what_was_not_checked_is_neither_valid_nor_invalid(
    records: list[Record], valid: bool | None
) -> None:
    assert findings_of(log(records)).valid is valid
