"""`dnsrig bisect`: rounds of trials through the runner, until `dnsrig.comparison.bisection` has the answer.

A search is a run directory that grows: each commit that is measured is a variant, each round of the search is a repeat.
``bisect.json`` beside the manifest (`dnsrig.comparison.bisection.record`) describes the search. So a report can be
drawn at any time, and a search that was killed goes on from what is there.

- ``candidates``  the commits, in order: of a repository, or named one by one
- ``manifest``    the manifest as it grows
- ``hunt``        one round after the other
"""
