"""Noisy bisection: which commit changed a metric, when every trial is noisy.

Pure functions of what was measured: no clock, no process, and no file but in ``record`` and ``trials``, which read a
run. ``search.next_step`` takes all that is known (`State`) and says what to measure next, or the answer. The rule and
what it assumes: docs/explanation/bisect.md.

- ``state``       what is known: rounds of trials, commits that cannot be measured
- ``scale``       on which trials are held against each other
- ``difference``  whether the two ends differ at all
- ``drift``       what drifts from round to round, as both ends tell it
- ``bins``        into which trials are sorted, as both ends set them
- ``evidence``    how much the trials of a commit say that it is like the bad end
- ``posterior``   how probable it is that each commit is the one
- ``search``      what to measure next, or the answer
- ``ratios``      a commit beside an end, for people
- ``course``      what was known after each round, for people
- ``record``      ``bisect.json``
- ``trials``      what the trials of a run say to its search
"""
