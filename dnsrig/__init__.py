"""dnsrig: a test rig for DNS servers.

- ``cli``         one file a command; prints, and turns errors into sentences and exit codes
- ``experiment``  the meaning of a TOML file, the specs and the order of trials, the runner, the trial
- ``procedures``  one file a kind of measurement
- ``lab``         makes and removes the small network: hosts and links
- ``servers``     one file a server, and the sources of their binaries
- ``datasets``    zones, which are made once and kept in the cache
- ``streams``     queries of clients, kept in the cache
- ``analysis``    reading a run, metrics, statistics
- ``importers``   one file for each other tool: its results, as a run
- ``traps``       one file for each known cause of a wrong conclusion
- ``report``      charts, HTML, tables, exports
- ``browse``      runs in a browser, with the report's charts, and notes
- ``rundir``      the run directory: the contract between writers and readers

Dependencies point one way: cli -> experiment -> procedures -> lab, servers, streams, datasets.
``analysis``, ``traps`` and ``report`` read only run directories and never import the lab.
``importers`` makes run directories, and reads them with ``analysis``. ``browse`` uses the report. Only ``cli`` knows
these two.
"""

__version__ = "0.1.0"
