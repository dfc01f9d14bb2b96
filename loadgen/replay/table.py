"""A replay as text: how often it comes out otherwise, on what grounds, and the first of them."""

from collections.abc import Sequence

from radixgate.loadgen.replay.log_reader import Gaps
from radixgate.loadgen.replay.redecide import Redecided
from radixgate.loadgen.replay.tally import Tally, queued_at

_REASONS_SHOWN = 12


def table(tally: Tally, gaps: Gaps, policy: str, show: int) -> str:
    """`show`: differing decisions that are listed."""
    recorded = ", ".join(sorted(tally.policies))
    same = tally.decisions - tally.differing
    parts = [
        [
            f"{tally.decisions} decisions by {recorded}, again by {policy}: {same} the same,"
            f" {tally.differing} differ ({tally.differing / tally.decisions:.1%})"
        ],
        _gaps(gaps),
        ["", *_means(tally)],
        ["", *_reasons(tally)],
    ]
    if tally.kept and show:
        parts.append(["", *_differences(tally.kept[:show])])
    return "\n".join(line for part in parts for line in part)


def _gaps(gaps: Gaps) -> list[str]:
    """What keeps ties from coming out as they were: a policy's memory goes back to its start."""
    said = []
    if gaps.before:
        said.append(f"{gaps.before} decisions before the first one are not in this file")
    if gaps.missing:
        said.append(f"{gaps.missing} decisions were dropped")
    if gaps.unreadable:
        said.append(f"{gaps.unreadable} lines are unreadable")
    return [f"{'; '.join(said)}: sessions and ties may come out otherwise"] if said else []


def _means(tally: Tally) -> list[str]:
    prompt, count = max(1, tally.prompt_tokens), max(1, tally.decisions)
    rows = [f"{'at the chosen worker, mean':<28}{'recorded':>12}{'again':>12}"]
    for name, one, two in (
        (
            "believed hit rate",
            f"{tally.recorded.cached_tokens / prompt:.3f}",
            f"{tally.again.cached_tokens / prompt:.3f}",
        ),
        (
            "prompt tokens queued",
            f"{tally.recorded.queued_tokens / count:.0f}",
            f"{tally.again.queued_tokens / count:.0f}",
        ),
        (
            "requests in flight",
            f"{tally.recorded.requests / count:.2f}",
            f"{tally.again.requests / count:.2f}",
        ),
    ):
        rows.append(f"{name:<28}{one:>12}{two:>12}")
    return rows


def _reasons(tally: Tally) -> list[str]:
    rows = [f"{'recorded reason':<20}{'reason again':<20}{'same':>8}{'differ':>8}"]
    pairs = sorted({(recorded, again) for recorded, again, _ in tally.reasons})
    counts = {pair: (tally.reasons[(*pair, False)], tally.reasons[(*pair, True)]) for pair in pairs}
    pairs.sort(key=lambda pair: (-counts[pair][1], -counts[pair][0], pair))
    for recorded, again in pairs[:_REASONS_SHOWN]:
        same, differing = counts[recorded, again]
        rows.append(f"{recorded:<20}{again:<20}{same:>8}{differing:>8}")
    if len(pairs) > _REASONS_SHOWN:
        rows.append(f"and {len(pairs) - _REASONS_SHOWN} more pairs of reasons")
    return rows


def _differences(kept: Sequence[Redecided]) -> list[str]:
    head = f"{'decision':>9}  {'':<8}{'worker':<24}{'reason':<16}"
    rows = [f"{head}{'cached':>9}{'queued':>9}{'requests':>10}{'score':>12}"]
    for one in kept:
        line = one.line
        sides = (
            ("was", one.recorded, line.reason, one.scores[0]),
            ("again", one.index, one.reason, one.scores[1]),
        )
        for place, (when, index, reason, score) in enumerate(sides):
            columns = line.candidates
            number = f"{line.n:>9}" if place == 0 else " " * 9
            rows.append(
                f"{number}  {when:<8}{columns.worker[index]:<24.23}{reason:<16.15}"
                f"{columns.cached_tokens[index]:>9}{queued_at(line, index):>9}"
                f"{columns.requests_in_flight[index]:>10}{score:>12.4g}"
            )
    return rows
