"""Builds of servers from their repositories: any commit, made once, kept in the cache.

`reference` reads ``git:REF WORD…``; `repository` is where commits come from; `recipe` says what a server needs to be
built, and each server's is a file of ``dnsrig/servers/recipes``; `dnsrig.confinement` runs a script without network and
rights; `build` makes a build, and `kept` keeps the folder of all builds below its limit. What others use is in
``dnsrig/servers/sources/git.py``.
"""
