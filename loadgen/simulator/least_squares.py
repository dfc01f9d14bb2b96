"""A linear fit whose coefficients are costs, so that none is below zero."""

from collections.abc import Sequence
from math import fsum


def least_squares(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """One coefficient a column. O(rows x columns²).

    A column whose coefficient would be below zero counts as nothing and is left out, the worst
    first; so is one that the others make up.
    """
    width = len(rows[0])
    # Columns of like size, so that a pivot says how much is left of a column.
    sizes = [max(abs(row[column]) for row in rows) or 1.0 for column in range(width)]
    scaled = [[row[column] / sizes[column] for column in range(width)] for row in rows]
    kept = list(range(width))
    while kept:
        found = _solved(scaled, values, kept)
        worst = min(range(len(kept)), key=lambda place: found[place])
        if found[worst] >= 0.0:
            whole = [0.0] * width
            for place, column in enumerate(kept):
                whole[column] = found[place] / sizes[column]
            return whole
        kept.pop(worst)
    return [0.0] * width


def _solved(
    rows: Sequence[Sequence[float]], values: Sequence[float], kept: Sequence[int]
) -> list[float]:
    """The normal equations by elimination; a column without a pivot gets zero."""
    size = len(kept)
    system = [
        [fsum(row[a] * row[b] for row in rows) for b in kept]
        + [fsum(row[a] * value for row, value in zip(rows, values, strict=True))]
        for a in kept
    ]
    tiny = 1e-9 * max(system[place][place] for place in range(size))
    pivots = []
    for place in range(size):
        if system[place][place] <= tiny:
            continue
        pivots.append(place)
        for other in range(size):
            if other == place:
                continue
            factor = system[other][place] / system[place][place]
            system[other] = [
                a - factor * b for a, b in zip(system[other], system[place], strict=True)
            ]
    return [
        system[place][size] / system[place][place] if place in pivots else 0.0
        for place in range(size)
    ]
