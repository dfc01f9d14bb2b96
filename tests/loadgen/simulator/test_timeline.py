"""Virtual time goes forward, and equals keep their order."""

from radixgate.loadgen.simulator.timeline import Timeline


def test_events_happen_in_order_of_time_and_then_of_entry() -> None:
    timeline = Timeline()
    seen: list[tuple[str, float]] = []
    for name, when in [("late", 2.0), ("first", 1.0), ("second", 1.0), ("zero", 0.0)]:
        timeline.at(when, lambda name=name: seen.append((name, timeline.now())))  # type: ignore[misc]
    timeline.run()
    assert seen == [("zero", 0.0), ("first", 1.0), ("second", 1.0), ("late", 2.0)]


def test_what_should_have_happened_already_happens_now() -> None:
    timeline = Timeline()
    seen: list[float] = []
    timeline.at(5.0, lambda: timeline.at(1.0, lambda: seen.append(timeline.now())))
    timeline.run()
    assert seen == [5.0]


def test_without_a_delay_it_happens_at_once() -> None:
    timeline = Timeline()
    seen: list[int] = []
    timeline.after(0.0, lambda: seen.append(1))
    assert seen == [1]
    timeline.after(0.5, lambda: seen.append(2))
    assert seen == [1]
    timeline.run()
    assert seen == [1, 2]
