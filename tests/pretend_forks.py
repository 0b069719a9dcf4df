"""Forks trials as a run does, but each is a PROGRAM that only pretends: `python pretend_forks.py PROGRAM SOCKET`."""

import runpy
import socket
import sys

from dnsrig.cli import _app, _fork_server

program, requests = sys.argv[1:]
_app.main = lambda: runpy.run_path(program, run_name="__main__")  # type: ignore[assignment]
_fork_server.load = lambda: None
_fork_server.main(socket.socket(fileno=int(requests)))
