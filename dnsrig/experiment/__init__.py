"""Experiments, in the order in which a run goes through them.

- ``model``         what a TOML file means
- ``hosts``, ``path``  its hosts and links, resolved for a trial
- ``plan``          the spec of each trial, and their order; ``estimate``: how long they take
- ``preparation``   from a person's request to the manifest of a run
- ``runner``        executes a manifest, each trial as a child process (``children``); ``extend`` adds repeats
- ``executors``     where a trial is executed: by that process, or under another kernel
- ``trial``         one trial

Nothing here is particular to a server or a kind of measurement.
"""
