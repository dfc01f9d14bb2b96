"""Changes are told by worker, for the prompts that they concern, as long as all are remembered."""

from radixgate.radix_mirror.changes import Changes

A, B, C = 0b001, 0b010, 0b100
IDS = (11, 12, 13, 14, 15, 16)


def test_a_change_concerns_the_prompts_that_have_its_block_at_its_depth() -> None:
    changes = Changes()
    changes.note(1, A, 2, 13)
    changes.note(1, B, 2, 99)  # another prompt's
    changes.note(1, C, 4, 15)  # behind what is asked for
    assert changes.since(1, IDS, 4) == {A: 2}
    assert changes.since(1, IDS, 5) == {A: 2, C: 4}
    assert changes.since(1, (11, 12), 2) == {}


def test_of_several_changes_of_a_worker_the_first_in_the_prompt_counts() -> None:
    changes = Changes()
    for depth in (4, 0, 2):
        changes.note(1, A, depth, IDS[depth])
    assert changes.since(1, IDS, 6) == {A: 0}


def test_what_was_before_a_walk_is_no_news_after_it() -> None:
    changes = Changes()
    changes.note(1, A, 0, 11)
    changes.note(2, B, 0, 11)
    assert changes.since(0, IDS, 6) == {A: 0, B: 0}
    assert changes.since(2, IDS, 6) == {B: 0}
    assert changes.since(3, IDS, 6) == {}


def test_beyond_so_many_the_oldest_are_forgotten_and_what_they_were_is_not_known() -> None:
    changes = Changes()
    for walk in range(65):
        changes.note(walk, A, 0, 11)
        changes.note(walk, A, 0, 11)  # twice is once
    assert changes.since(31, IDS, 6) is None
    assert changes.since(32, IDS, 6) == {A: 0}
    changes.forget(64)
    assert changes.since(64, IDS, 6) is None
    assert changes.since(65, IDS, 6) == {}
