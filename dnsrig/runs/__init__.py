"""Reads a run directory: trials with their rows, latencies and stacks, and what these show of hosts, links and clients.

Everything here reads files of a run and nothing else. Modules that take rows and return figures are pure functions.
"""
