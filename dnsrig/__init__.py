"""dnsrig: a test rig for DNS servers.

What lives where:

- ``cli``         one file a command; prints, and turns errors into sentences and exit codes
- ``experiment``  what a TOML file means, the plan (order of trials), the runner, the trial
- ``procedures``  one file a kind of measurement
- ``machines``    how other machines are reached: for hosts of a trial, or for whole trials
- ``lab``         makes and removes the small network: hosts and links
- ``servers``     one file or folder a server; where its binaries come from
- ``datasets``    zones and their like, made once and kept in the cache
- ``streams``     what clients ask, kept in the cache
- ``runs``        reading a run: trials, and what their rows show
- ``stats``       intervals, tests and comparisons of a handful of repeats
- ``comparison``  variants, runs, versions, thresholds, bisection
- ``prediction``  what a transfer to a far secondary would take, from laws and measured runs
- ``metrics``     figures of a trial, from what was recorded
- ``checks``      was a trial what the name of its variant says?
- ``importers``   one file another tool: what it measured, as a run
- ``traps``       one file a known way for a measurement to lie
- ``report``      charts, HTML, tables, exports
- ``browse``      runs in a browser; reads what the report reads, and writes notes
- ``rundir``      what a run directory holds: the contract between writers and readers

Dependencies point one way: cli -> experiment -> procedures, machines -> lab, servers, streams, datasets.
``runs``, ``stats``, ``comparison``, ``prediction``, ``metrics``, ``checks``, ``traps`` and ``report`` read run
directories only and never import the lab. ``importers`` makes run directories, and reads them with ``runs``. ``browse``
stands on the report. Only ``cli`` knows of these two.
"""

__version__ = "0.1.0"
