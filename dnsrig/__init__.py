"""dnsrig: a test rig for DNS servers.

- ``cli``         one file a command; prints, and turns errors into sentences and exit codes
- ``experiment``  the meaning of a TOML file, the specs and the order of trials, the runner, the trial
- ``procedures``  one file a kind of measurement
- ``machines``    how other machines are reached: for hosts of a trial, or for whole trials
- ``lab``         makes and removes the small network: hosts and links
- ``servers``     one file or folder for each server, and the sources of their binaries
- ``datasets``    zones, which are made once and kept in the cache
- ``streams``     queries of clients, kept in the cache
- ``runs``        reading a run: trials, and what their rows show
- ``stats``       intervals, tests and comparisons of a handful of repeats
- ``comparison``  variants, runs, versions, thresholds, bisection
- ``prediction``  the time of a transfer to a far secondary, from laws and measured runs
- ``metrics``     figures of a trial, from what was recorded
- ``checks``      whether a trial was what the name of its variant states
- ``importers``   one file for each other tool: its results, as a run
- ``traps``       one file for each known cause of a wrong conclusion
- ``report``      charts, HTML, tables, exports
- ``browse``      runs in a browser, with the report's charts, and notes
- ``rundir``      the run directory: the contract between writers and readers

Dependencies point one way: cli -> experiment -> procedures, machines -> lab, servers, streams, datasets.
``runs``, ``stats``, ``comparison``, ``prediction``, ``metrics``, ``checks``, ``traps`` and ``report`` read run
directories only and never import the lab. ``importers`` makes run directories, and reads them with ``runs``. ``browse``
stands on the report. Only ``cli`` knows of these two.
"""

__version__ = "0.1.0"
