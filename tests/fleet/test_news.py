"""What waits for a reader among the processes of one gateway."""

from books import KEY
from radixgate.fleet.news import MAX_WAITING_ENDS, News, NewsBox, Placed, PlacementEnd, Share


def placed(number: int, blocks: int = 0) -> Placed:
    return Placed(1, number, "a", KEY, bytes(8 * blocks), 0, 2.0)


def test_a_slow_reader_misses_the_oldest_placements_and_no_load() -> None:
    box = NewsBox(max_bytes=1_000)
    for number in range(5):
        box.add(
            News([Share(1, "a", number, 0, 0)], [placed(number, 30)], [PlacementEnd(1, 9, True, 1)])
        )
    news = box.take()
    assert news is not None
    assert [one.number for one in news.placed] == [3, 4]
    assert box.dropped == 3
    assert news.loads == [Share(1, "a", 4, 0, 0)]
    assert len(news.ended) == 5
    assert box.take() is None


def test_what_fits_exactly_is_not_missed_before_and_after_it_was_taken() -> None:
    box = NewsBox(max_bytes=2 * (8 * 30 + 128))
    for first in (0, 2):
        box.place(placed(first, 30))
        box.place(placed(first + 1, 30))
        news = box.take()
        assert news is not None
        assert [one.number for one in news.placed] == [first, first + 1]
    assert box.dropped == 0


def test_one_placement_is_kept_however_long() -> None:
    box = NewsBox(max_bytes=10)
    box.place(placed(1, 100))
    box.place(placed(2, 100))
    news = box.take()
    assert news is not None
    assert [one.number for one in news.placed] == [2]


def test_a_slow_reader_misses_the_oldest_ends() -> None:
    box = NewsBox()
    box.end(PlacementEnd(1, 1, True, None))
    later = PlacementEnd(1, 2, True, None)
    for _ in range(MAX_WAITING_ENDS):
        box.end(later)
    news = box.take()
    assert news is not None
    assert len(news.ended) == MAX_WAITING_ENDS
    assert news.ended[0] == later


def test_what_waits_of_a_dead_process_is_dropped() -> None:
    box = NewsBox()
    box.add(News([Share(1, "a", 3, 0, 0), Share(2, "a", 1, 0, 0)], [], []))
    box.forget(1)
    news = box.take()
    assert news is not None
    assert news.loads == [Share(2, "a", 1, 0, 0)]
