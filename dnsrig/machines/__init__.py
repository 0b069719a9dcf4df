"""Runs that are spread over several equal machines.

- ``spread``   the machines of a run: looked at, held, used
- ``lane``     brings to a machine what its trials need, executes them there, and brings back what they measured
- ``place``    one machine, as a run sees it: where functions are called
- ``dask``     the machines of a Dask cluster
- ``document`` a file of machines that are reached over SSH
- ``connection`` to one of them: dialled, told what is wrong with it
- ``ssh``      the machines of a file become a Dask cluster: workers, and a scheduler here
- ``closure``  what of dnsrig is brought to them
- ``arrival``  what they run first: it takes that
- ``worker``   what they run then: a Dask worker
- ``there``    the functions that are called on a machine
- ``leases``   who uses a machine, and until when

A round of a run lies on one machine (`dnsrig.rundir.Manifest.machine_of`), so that what is compared was measured on the
same one. Nothing is moved from machine to machine: a trial that was lost is repeated where it was lost.
"""
