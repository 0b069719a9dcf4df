"""The small network: hosts (network namespaces with cgroups), links, the processes on them, and its removal.

Everything made here carries the tag of one trial and is listed in its ledger (``ledger.py``), so that
whatever happens to the rig, the next one can remove exactly that and nothing else.
"""
