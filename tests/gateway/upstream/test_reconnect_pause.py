"""A worker is asked again soon after what has lasted, and ever later after what has not."""

from clocks import FakeClock
from radixgate.gateway.upstream.reconnect_pause import LASTED_S, ReconnectPause


def test_it_doubles_up_to_a_second_and_starts_over_after_what_has_lasted() -> None:
    clock = FakeClock()
    pause = ReconnectPause(clock)

    def lasting(seconds: float) -> float:
        pause.begin()
        clock.advance(seconds)
        return pause.end()

    assert [lasting(0.0) for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert lasting(LASTED_S - 0.5) == 1.0
    assert [lasting(LASTED_S), lasting(0.0)] == [0.1, 0.2]


def test_the_time_between_two_connections_is_not_counted() -> None:
    clock = FakeClock()
    pause = ReconnectPause(clock)
    pause.begin()
    assert pause.end() == 0.1
    clock.advance(60.0)
    pause.begin()
    assert pause.end() == 0.2
