"""Comparison of variants, runs and versions. All of it uses one comparison: `dnsrig.stats.samples.compare`.

- ``summary``          the tables of a run: each variant beside its baseline
- ``compare``          two runs, or the variants of one; ``run_differences``: what else differs between the runs
- ``criterion``        the grammar of rules, ``p99 > 110 %``; ``thresholds``: what rules decide
- ``history``          a metric over the versions of a server; ``versions``: their names and order
- ``pairs``            two versions of a server: costs, defaults, and code that ran
- ``bisection``        which commit changed a metric
- ``published``        figures of the sources beside ours
- ``calibration``      the smallest difference that the repeats of a machine can show
"""
