"""Where sessions went last: bounded, and copied for nothing."""

import copy

from radixgate.policies.session_homes import SessionHomes


def test_a_session_lives_where_it_went_last() -> None:
    homes = SessionHomes()
    homes.settle("a", "w0")
    homes.settle("a", "w1")
    assert homes.of("a") == "w1"
    assert homes.of("b") is None


def test_nobody_has_no_home() -> None:
    homes = SessionHomes()
    homes.settle(None, "w0")
    homes.settle("", "w0")
    assert (homes.of(None), homes.of(""), len(homes)) == (None, None, 0)


def test_who_was_not_heard_of_for_longest_is_forgotten_first() -> None:
    homes = SessionHomes(most=2)
    for session in ("a", "b", "a", "c"):
        homes.settle(session, "w0")
    assert [homes.of(session) for session in "abc"] == ["w0", None, "w0"]


def test_a_copy_knows_all_and_changes_nothing_behind_it() -> None:
    homes = SessionHomes()
    homes.settle("a", "w0")
    twin = copy.deepcopy(homes)
    assert twin.of("a") == "w0"
    twin.settle("a", "w1")
    twin.settle("b", "w1")
    assert (twin.of("a"), twin.of("b")) == ("w1", "w1")
    assert (homes.of("a"), homes.of("b")) == ("w0", None)
