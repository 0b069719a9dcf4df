"""The network interfaces that are hardware, or a hypervisor's: what they are, and which CPUs their interrupts go to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SYS = Path("/sys")
PROC = Path("/proc")


@dataclass(frozen=True)
class Nic:
    """What a machine tells of an interface; None where it does not."""

    name: str
    driver: str | None
    speed_mbit: int | None
    queues: int
    """In which it receives."""
    interrupts: dict[int, str]
    """Number -> the CPUs that it may go to, as the kernel lists them."""

    @property
    def says(self) -> str:
        """``virtio_net 10,000 Mbit/s``."""
        speed = "" if self.speed_mbit is None else f" {self.speed_mbit:,} Mbit/s"
        return f"{self.driver or 'driver not known'}{speed}"


def found() -> list[Nic]:
    """Those with a device behind them: not veth, bridges, tun or loopback."""
    return [_nic(folder) for folder in sorted((SYS / "class/net").glob("*")) if (folder / "device").exists()]


def _nic(folder: Path) -> Nic:
    speed = _number(folder / "speed")
    driver = folder / "device/driver"
    return Nic(
        folder.name,
        driver.resolve().name if driver.exists() else None,
        # -1 is what the kernel says of a link that is down or has no speed.
        speed if speed is not None and speed > 0 else None,
        len(list((folder / "queues").glob("rx-*"))),
        interrupts(folder.name),
    )


def interrupts(name: str) -> dict[int, str]:
    """Those of the device of an interface, or of the bus's device that carries it, as with virtio."""
    where = (SYS / "class/net" / name / "device").resolve()
    folders = (where / "msi_irqs", where.parent / "msi_irqs")
    numbers = next((sorted(int(file.name) for file in folder.glob("*")) for folder in folders if folder.exists()), [])
    allowed = {number: _text(PROC / f"irq/{number}/smp_affinity_list") for number in numbers}
    return {number: cpus for number, cpus in allowed.items() if cpus is not None}


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text and text.removeprefix("-").isdigit() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
