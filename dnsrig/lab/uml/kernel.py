"""The kernel: Debian's package `user-mode-linux`, unpacked into the cache like a server's root file system.

Its modules lie in /usr/lib/uml/modules of the package, with the indexes that modprobe wants. kmod, which many minimal
machines lack, comes along from the same suite and runs there with that suite's own libraries.
"""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from dnsrig.errors import DnsrigError
from dnsrig.lab import tcp
from dnsrig.servers import debian
from dnsrig.servers.debian import Root

SUITE = "bookworm"
"""Its kernel is 6.1, a long-term one. The suites after it have the package too, but nobody has tried them."""
NAME = "user-mode-linux"
PACKAGES = (NAME, "kmod")
ARCHITECTURES = ("x86_64",)
"""What Debian builds the package for, and dnsrig was tried on."""
OWN_VENDOR = "User Mode Linux"
"""`vendor_id` of the only CPU in /proc/cpuinfo."""


@dataclass(frozen=True)
class Kernel:
    """A kernel in the cache."""

    root: Path
    version: str
    """Version of the package; the release is what runs inside (uname(2))."""
    release: str

    @property
    def program(self) -> Path:
        return self.root / "usr/bin/linux.uml"

    @property
    def modules(self) -> Path:
        """The folder with a folder a release."""
        return self.root / "usr/lib/uml/modules"

    def has(self, module: str) -> bool:
        """Whether ``module`` can be loaded, e.g. ``sch_netem``; what is built in counts as well."""
        folder = self.modules / self.release
        indexes = (folder / "modules.dep", folder / "modules.builtin")
        text = "\n".join(index.read_text() for index in indexes if index.exists())
        return f"/{module}.ko" in text

    def congestion_controls(self) -> list[str]:
        """Names of all that its sockets can be given, e.g. ``hybla``; cubic and reno are built in."""
        return sorted({"cubic", "reno", *tcp.loadable_controls(self.modules, self.release)})


def find() -> Kernel | None:
    """Find the newest kernel in the cache; None if there is no kernel yet."""
    return next((kernel for root in reversed(debian.roots(SUITE, NAME)) if (kernel := _kernel(root))), None)


def install() -> Kernel:
    """The kernel, fetched from this machine's Debian mirror if it is not in the cache yet."""
    if why := _impossible():
        raise DnsrigError(
            f"kernel uml is not available: {why}", hint="use a machine whose own kernel has the needed features"
        )
    if found := find():
        return found
    kernel = _kernel(debian.build(SUITE, NAME, PACKAGES))
    if kernel is None:
        raise DnsrigError(
            f"the package {NAME} of Debian {SUITE} is not as expected: it has no kernel or no modules",
            hint='measure with kernel = "running"',
        )
    return kernel


def available() -> str | None:
    """None if a trial can run under it, perhaps after its package is fetched; else why not."""
    if why := _impossible():
        return why
    if find() is None and shutil.which("apt-get") is None:
        return f"the package {NAME} is not in the cache, and without apt-get it cannot be fetched"
    return None


def inside() -> bool:
    """Whether this process runs under it."""
    return f": {OWN_VENDOR}" in Path("/proc/cpuinfo").read_text()


def _impossible() -> str | None:
    if inside():
        return "this is User-mode Linux already"
    if platform.machine() not in ARCHITECTURES:
        return f"Debian builds {NAME} for {', '.join(ARCHITECTURES)}; this is {platform.machine()}"
    if shutil.which("unshare") is None:
        return "the program unshare (package util-linux) is missing"
    return None


def _kernel(root: Root) -> Kernel | None:
    releases = sorted(index.parent.name for index in (root.path / "usr/lib/uml/modules").glob("*/modules.dep"))
    if not releases or not (root.path / "usr/bin/linux.uml").is_file():
        return None
    return Kernel(root.path, root.packages.get(NAME, ""), releases[-1])
