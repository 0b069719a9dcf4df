"""Noisy bisection: which commit changed a metric, when every trial is noisy.

Pure functions of what was measured: no clock, no process, and no file but in ``record``, which reads a run.
``search.next_step`` takes all that is known (`State`) and returns what to measure next, or the answer. The rule and its
assumptions: docs/explanation/bisect.md.

- ``state``       what is known: rounds of trials, commits that cannot be measured, the scale of values
- ``difference``  whether the two ends differ at all
- ``evidence``    whether the trials of a commit, without drift, resemble the good or the bad end
- ``posterior``   how probable it is that each commit is the one
- ``search``      what to measure next, or the answer
- ``course``      for people: what was known after each round, and a commit beside an end
- ``record``      ``bisect.json``, and the state that the trials of a run make
"""
