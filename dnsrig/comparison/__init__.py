"""Comparison of variants, runs and versions.

The samples of two sides are compared by `dnsrig.stats.samples.compare`, everywhere but in three places: `thresholds`
tests against a limit, `history` also looks for the version at which a change begins (`dnsrig.stats.change_points`), and
`bisection` decides after each round.

- ``summary``          the tables of a run: each variant beside its baseline
- ``compare``          two runs, or the variants of one; ``run_differences``: what else differs between the runs
- ``criterion``        the grammar of rules, ``p99 > 110 %``; ``thresholds``: what rules decide
- ``history``          a metric over the versions of a server; ``versions``: their names and order
- ``pairs``            two versions of a server: costs, defaults, and code that ran
- ``bisection``        which commit changed a metric
- ``published``        figures of the sources beside ours
- ``calibration``      the smallest difference that the repeats of a machine can show
"""
