"""Builds of servers from their repositories: any commit, made once, kept in the cache.

`reference` reads ``git:REF WORD…`` and chooses the commits of a range; `repository` contains the commits; a `recipe`
describes what a server needs to be built (each server's is beside its driver), and makes the root file systems with
compilers; `dnsrig.confinement` runs a script without network and rights; `build` makes a build, `errors` explains why
one failed, and `kept` keeps the folder of all builds below its limit. Other parts use
``dnsrig/servers/sources/git.py``.
"""
