"""`dnsrig bisect`: rounds of trials through the runner, until `dnsrig.comparison.bisection` has the answer.

A search is a run directory that grows: each measured commit is a variant, each round of the search is a repeat.
``bisect.json`` beside the manifest (`dnsrig.comparison.bisection.record`) has the target of the search. So a report can
be drawn at any time, and a search that was killed continues with its finished trials.

- ``candidates``  the commits, in order: from a repository, or listed one by one
- ``manifest``    the manifest as it grows
- ``hunt``        one round after the other
"""
