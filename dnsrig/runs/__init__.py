"""Reads a run directory: trials with their rows, latencies and stacks, and what these show of hosts, links and clients.

Everything here reads files of a run and nothing else. Modules that take rows and return figures are pure functions.

- ``run``, ``trial``    a run, and a trial with its record, rows and metrics
- ``metric``            what a metric is; the functions are in `dnsrig.metrics`
- ``failures``          what failed while a run was examined and drawn
- ``rows``              the reader of Arrow files, up to their damage; ``row_files`` has their columns
- ``latency``           the distributions in latency.hlog
- ``load_result``       the summary of a load generator; ``lag`` has the limits of its lateness
- ``during``            growth of counters in stretches of time; ``minutes``: a resolver at first and at last
- ``cpu``, ``profile``, ``sockets``                  what a trial cost, what ran, how a connection went
- ``transfers``, ``changes``, ``replication``        zones that were transferred, changed, and followed from far away
- ``stalls``, ``late_clients``, ``flood``            when the server answered nobody, or some clients late; a flood
- ``streamed``, ``upstream``, ``clocks``             what was replayed, what a resolver asked, clocks of other machines
"""
