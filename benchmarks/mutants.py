"""Do the tests notice when the code of routing is changed? One small change at a time, by mutmut.

python benchmarks/mutants.py run --sample 20
python benchmarks/mutants.py run
python benchmarks/mutants.py again
python benchmarks/mutants.py report

`run` tries what has not been tried, of a sample drawn by seed or of all, and goes on where it was
stopped; `again` tries survivors once more, after tests were added. All are kept in mutants/. The
copies and the tests that belong to them are named in pyproject.toml.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

KEPT = Path("mutants/src/radixgate")
LEAST = 0.85
# Exit codes as mutmut keeps them: tests failed, pytest broke off, out of time, a crash.
KILLED = {1, 3, 24, -24, 36, 152, 255, -9, -11}
UNTESTED = {33, 5}
# One mutant is enough to have all of them written, and to learn which test runs which function.
ANY = "radixgate.policies.base.*"
TRIED_AT_ONCE = 400


@dataclass(frozen=True, slots=True)
class Module:
    """The mutants of one file: their names, and how each one ended; None is not tried yet."""

    name: str
    ended: Mapping[str, int | None]

    @property
    def package(self) -> str:
        return self.name.split("/")[0]

    def sample(self, most: int | None, seed: int) -> list[str]:
        names = sorted(self.ended)
        if most is None or most >= len(names):
            return names
        return random.Random(f"{seed}/{self.name}").sample(names, most)


@dataclass(frozen=True, slots=True)
class Stratum:
    """A module's share of a figure: all mutants, those that were tried, and the killed ones."""

    mutants: int
    tried: int
    killed: int


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=("run", "again", "report"))
    parser.add_argument("--sample", type=int, help="mutants of each module; without it all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    asked = parser.parse_args()
    if asked.part == "report":
        return report(asked.sample, asked.seed)
    if asked.part == "run":
        mutmut([ANY])
    names = [
        name
        for module in modules()
        for name in module.sample(asked.sample, asked.seed)
        if (module.ended[name] is None if asked.part == "run" else survived(module.ended[name]))
    ]
    # A command line has a length, and mutmut takes names nowhere else.
    for first in range(0, len(names), TRIED_AT_ONCE):
        mutmut(names[first : first + TRIED_AT_ONCE])
    return report(asked.sample, asked.seed)


def mutmut(names: Sequence[str]) -> None:
    """Tries them, one process at a time."""
    command = Path(sys.executable).with_name("mutmut")
    alone = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    subprocess.run([command, "run", "--max-children", "1", *names], check=True, env=alone)


def modules() -> Iterator[Module]:
    for path in sorted(KEPT.glob("*/*.py.meta")):
        name = f"{path.parent.name}/{path.name.removesuffix('.py.meta')}"
        yield Module(name, json.loads(path.read_text())["exit_code_by_key"])


def survived(code: int | None) -> bool:
    return code is not None and code not in KILLED


def report(most: int | None, seed: int) -> int:
    """One line a module and one a package; 1 if a package has less than is asked of it."""
    packages: dict[str, list[Stratum]] = {}
    for module in modules():
        codes = [module.ended[name] for name in module.sample(most, seed)]
        tried = [code for code in codes if code is not None]
        found = Stratum(len(module.ended), len(tried), sum(code in KILLED for code in tried))
        if not found.mutants:
            continue
        packages.setdefault(module.package, []).append(found)
        unseen = sum(code in UNTESTED for code in tried)
        print(
            f"{module.name:30} {found.mutants:4} mutants, {found.killed:3} of {found.tried:3} dead"
            + (f", {unseen} run by no test" if unseen else "")
            + (f", {len(codes) - len(tried)} not tried yet" if len(codes) > len(tried) else "")
        )
    shares = {package: share(strata) for package, strata in packages.items()}
    for package, (killed, margin) in shares.items():
        low, high = max(0.0, killed - margin), min(1.0, killed + margin)
        count = sum(one.tried for one in packages[package])
        print(f"{package}: {killed:.1%} killed ({low:.1%} to {high:.1%}), {count} tried")
    return 0 if all(killed >= LEAST for killed, _ in shares.values()) else 1


def share(strata: Sequence[Stratum]) -> tuple[float, float]:
    """Killed, each module weighted by its mutants, and half of the 95 % interval of the sample."""
    strata = [one for one in strata if one.tried]
    mutants = sum(one.mutants for one in strata)
    killed, variance = 0.0, 0.0
    for one in strata:
        weight = one.mutants / mutants
        killed += weight * one.killed / one.tried
        # A module all of whose tried mutants died may still have others.
        likely = (one.killed + 1) / (one.tried + 2)
        left = 1 - one.tried / one.mutants
        variance += weight**2 * left * likely * (1 - likely) / one.tried
    return killed, 1.96 * math.sqrt(variance)


if __name__ == "__main__":
    sys.exit(main())
