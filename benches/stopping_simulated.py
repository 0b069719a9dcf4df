"""Whether a run that stops when its intervals are narrow claims differences that are not there: false claims, power,
repeats.

The summary is in docs/explanation/measuring.md, the rule in dnsrig/stats/stopping.py. Two variants are measured round
by round. Their figures have one of several shapes, or are drawn from stored trials (tests/trial_noise.json). The second
variant is as fast as the first, or slower by some percent. After each round the rule looks at the interval's width; at
the end the comparison is made as in reports.

    python benches/stopping_simulated.py [--sets N] [--slower PERCENT...] [--most REPEATS]
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import smoke
from smoke import sized

from dnsrig.stats import samples, stopping
from dnsrig.stats.samples import Sample, Samples
from dnsrig.stats.statistics import Comparison

Shape = Callable[[random.Random], float]
PERCENT, LEAST, MOST = 5, 5, 30
STORED = Path(__file__).parents[1] / "tests/trial_noise.json"
DRIFTING = "normal, 2 %, and 20 % of drift in 30 rounds"


def two_modes(noise: random.Random) -> float:
    return noise.gauss(1, 0.02) * (1.3 if noise.random() < 0.2 else 1)


SHAPES: dict[str, Shape] = {
    "normal, 2 %": lambda noise: noise.gauss(1, 0.02),
    "normal, 10 %": lambda noise: noise.gauss(1, 0.1),
    "heavy tail (Pareto, 1.5)": lambda noise: 1 + 0.02 * noise.paretovariate(1.5),
    "two modes, 30 % apart": two_modes,
    "ties, steps of 5 %": lambda noise: round(noise.gauss(1, 0.05) * 20) / 20,
    DRIFTING: lambda noise: noise.gauss(1, 0.02),
}


def stored() -> dict[str, Shape]:
    """Stored trials, in parts of their median, drawn with replacement."""
    series = {name: each["values"] for name, each in json.loads(STORED.read_text())["series"].items()}
    return {
        f"stored: {name}": drawn([value / statistics.median(values) for value in values])
        for name, values in series.items()
    }


def drawn(values: list[float]) -> Shape:
    return lambda noise: noise.choice(values)


def simulated(shape: Shape, slower: float, drift: float, noise: random.Random, most: int) -> tuple[Comparison, int]:
    """One run: the comparison at its end, and its repeats."""
    ours, theirs = Samples(), Samples()
    for repeat in range(1, most + 1):
        common = 1 + drift * repeat / MOST
        mine, other = (1 + slower) * common * shape(noise), common * shape(noise)
        ours = Samples((*ours, Sample(mine, mine, round=repeat)))
        theirs = Samples((*theirs, Sample(other, other, round=repeat)))
        if repeat >= LEAST:
            found = samples.compare(ours, theirs, "lower")
            if stopping.enough(repeat, [found.interval], percent=PERCENT, least=LEAST, most=most):
                return replace(found, p_corrected=found.p), repeat
    raise AssertionError("the rule ends with its largest number of repeats")


def wilson(count: int, of: int) -> str:
    """A share in percent with Wilson's 95 % interval (Probable inference, the law of succession, 1927)."""
    z, share = 1.96, count / of
    middle, spread = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    low, high = ((middle + sign * spread) / (1 + z * z / of) for sign in (-1, 1))
    return f"{100 * share:.1f} % [{100 * max(0.0, low):.1f}..{100 * min(1.0, high):.1f}]"


def main() -> None:
    asking = smoke.parser(__doc__)
    asking.add_argument("--sets", type=int, default=sized(1000, smoke=2), help="runs that are simulated for each row")
    asking.add_argument("--slower", type=int, nargs="+", default=[0, 5, 10], metavar="PERCENT")
    asking.add_argument("--most", type=int, default=MOST, help="largest number of repeats, e.g. what --within permits")
    options = asking.parse_args()
    print("| shape | slower by | claims | in the wrong direction | repeats: median, most |")
    print("| --- | --- | --- | --- | --- |")
    for percent in options.slower:
        for name, shape in (SHAPES | stored()).items():
            noise = random.Random(f"{name} {percent}")
            drift = 0.2 if name == DRIFTING else 0.0
            found = [simulated(shape, percent / 100, drift, noise, options.most) for _ in range(options.sets)]
            claims = [comparison.change for comparison, _ in found if comparison.change != "undecided"]
            repeats = [count for _, count in found]
            wrong = str(claims.count("better")) if percent else "–"
            needed = f"{statistics.median(repeats):g}, {max(repeats)}"
            print(f"| {name} | {percent} % | {wilson(len(claims), len(found))} | {wrong} | {needed} |", flush=True)


if __name__ == "__main__":
    main()
