"""User-mode Linux: another kernel, as a process of this machine, for a whole trial.

It is for what the running kernel lacks (congestion controls, netem) and the machine's owner does not want to install.
`kernel` finds and fetches Debian's; `machine` runs a command under it; `init` is the first program inside. What must
not be measured there is in docs/explanation/uml.md: it has one CPU, and its system calls are dear.
"""

from __future__ import annotations

from dnsrig.lab.uml.guest import MEMORY_MB, Guest
from dnsrig.lab.uml.init import JOB_SEEN
from dnsrig.lab.uml.kernel import Kernel, available, find, inside, install

__all__ = ["JOB_SEEN", "MEMORY_MB", "Guest", "Kernel", "available", "find", "inside", "install"]
