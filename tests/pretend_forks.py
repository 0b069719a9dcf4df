"""Forks trials as a run does, but each is a PROGRAM that only pretends: `python pretend_forks.py PROGRAM SOCKET`."""

import runpy
import socket
import sys

from dnsrig.cli import _app
from dnsrig.experiment import forks

program, requests = sys.argv[1:]
_app.main = lambda: runpy.run_path(program, run_name="__main__")  # type: ignore[assignment]
forks.load = lambda: None
forks.main(socket.socket(fileno=int(requests)))
