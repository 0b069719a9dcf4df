"""Experiments, in the order in which a run goes through them.

- ``model``          the meaning of a TOML file
- ``hosts``, ``path``  its hosts and links, resolved for a trial
- ``trial_specs``    the spec of each trial, and the order of trials; ``estimate``: their duration
- ``preparation``    from a request to the manifest of a run
- ``runner``         executes a manifest, each trial as a child process (``children``), which is forked (``forks``)
- ``resume``         more repeats, and invalid trials again
- ``executors``      where a trial is executed: by that process, or under another kernel
- ``trial``          one trial

Nothing here knows a particular server or kind of measurement.
"""
