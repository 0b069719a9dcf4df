"""Other machines: how they are reached, what is brought to them, and what runs there.

Over SSH, one `connection` a machine starts `arrival` there, which takes the `packages` that the machine lacks and
becomes one of two processes:

- ``far_end``        has hosts of a trial; `ssh_machine` is the same machine as the trial sees it
- ``worker``         executes trials, as a worker of a Dask cluster that `ssh_workers` makes

Common to both, and to a Dask cluster of the user's own:

- ``document``       a file of machines, and how ssh reaches each
- ``folders``        datasets, servers and results, which are brought by their hash
- ``leases``         who uses a machine, and until when
- ``dask``           the machines of a Dask cluster
- ``dask_access``    who can connect to a Dask cluster: certificates, and listeners that ask for none

The functions that are called on a machine are in `dnsrig.lab.host_calls` and `dnsrig.experiment.trial_calls`.
"""
