"""What spoils figures, looked at on made-up machines: each look says that all is well, what to do, or that it is not
known."""

from __future__ import annotations

from pathlib import Path

import pytest

from dnsrig.lab import disturbances, nics
from dnsrig.lab.disturbances import CpuTimes, Remark

Files = dict[str, str]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that tells nothing yet."""
    monkeypatch.setattr(disturbances, "CPUS", tmp_path / "cpu")
    monkeypatch.setattr(disturbances, "NODES", tmp_path / "node")
    monkeypatch.setattr(disturbances, "CLOCKSOURCE", tmp_path / "clocksource")
    monkeypatch.setattr(nics, "SYS", tmp_path / "sys")
    monkeypatch.setattr(nics, "PROC", tmp_path / "proc")
    return tmp_path


def write(machine: Path, files: Files) -> None:
    for name, text in files.items():
        (machine / name).parent.mkdir(parents=True, exist_ok=True)
        (machine / name).write_text(text)


SLEEPY: Files = {"cpu/cpu0/cpuidle/state0/latency": "0\n", "cpu/cpu0/cpuidle/state3/latency": "133\n"}


@pytest.mark.parametrize(
    ("look", "files", "grade", "told"),
    [
        ("_smt", {}, "not known", "does not tell"),
        ("_smt", {"cpu/smt/active": "0\n"}, "good", "as far as the kernel knows"),
        ("_smt", {"cpu/smt/active": "1\n"}, "note", "smt/control"),
        ("_numa", {}, "not known", "does not tell"),
        ("_numa", {"node/node0/cpulist": ""}, "good", "one node"),
        ("_numa", {"node/node0/cpulist": "", "node/node1/cpulist": ""}, "note", "numactl --cpunodebind=0"),
        ("_governor", {}, "not known", "hypervisor or firmware"),
        ("_governor", {"cpu/cpu0/cpufreq/scaling_governor": "performance\n"}, "good", "driver not known"),
        (
            "_governor",
            {"cpu/cpu0/cpufreq/scaling_governor": "powersave\n", "cpu/cpu0/cpufreq/scaling_driver": "intel_pstate\n"},
            "note",
            "powersave (intel_pstate)",
        ),
        ("_clock", {}, "not known", "does not tell"),
        ("_clock", {"clocksource": "tsc\n"}, "good", "tsc"),
        ("_clock", {"clocksource": "hpet\n"}, "note", "clocksource=tsc"),
        ("_interrupts", {}, "not known", "veth has no interrupts"),
    ],
)
def test_each_look(machine: Path, look: str, files: Files, grade: str, told: str) -> None:
    write(machine, files)
    found: Remark = next(iter(getattr(disturbances, look)()))
    assert found.grade == grade and told in found.says + found.remedy
    assert bool(found.remedy) == (grade == "note"), "what is to be done is said, and nothing else"


@pytest.mark.parametrize(("files", "told"), [({}, "not known"), (SLEEPY, "wakes after 133 µs")])
def test_the_deepest_sleep_is_told(machine: Path, files: Files, told: str) -> None:
    write(machine, files)
    assert told in next(iter(disturbances._idle())).says


def nic(machine: Path, msi: str) -> None:
    """A virtual interface, whose interrupts are those of the bus's device above it, or its own."""
    device = machine / "sys/devices/pci0/virtio2"
    write(machine, {f"sys/devices/pci0/{msi}/37": "", f"sys/devices/pci0/{msi}/38": "", "drivers/virtio_net/bind": ""})
    write(machine, {"sys/class/net/eth0/speed": "-1\n", "sys/class/net/eth0/queues/rx-0/x": ""})
    write(machine, {"proc/irq/37/smp_affinity_list": "0-1\n", "proc/irq/38/smp_affinity_list": "1\n"})
    device.mkdir(parents=True, exist_ok=True)
    (device / "driver").symlink_to(machine / "drivers/virtio_net")
    (machine / "sys/class/net/eth0/device").symlink_to(device)
    write(machine, {"sys/class/net/lo/speed": "\n"})


@pytest.mark.parametrize("msi", ["msi_irqs", "virtio2/msi_irqs"])
def test_interrupts_of_an_interface(machine: Path, msi: str) -> None:
    nic(machine, msi)
    (found,) = nics.found()
    assert (found.name, found.says, found.queues) == ("eth0", "virtio_net", 1), "a link of unknown speed has none"
    assert found.interrupts == {37: "0-1", 38: "1"}
    (said,) = disturbances._interrupts()
    assert said.grade == "note" and "CPUs 0-1, 1" in said.says and "/proc/irq/37/" in said.remedy


BEFORE, AFTER = "cpu  100 0 50 800 10 0 5 35 0 0\ncpu0 1\n", "cpu  150 0 60 1600 20 0 5 165 0 0\n"


def test_what_the_cpus_did_meanwhile() -> None:
    before, after = disturbances.times(BEFORE), disturbances.times(AFTER)
    assert before == CpuTimes(155, 35, 1000) and after == CpuTimes(215, 165, 2000)
    steal, others = disturbances.steal(before, after), disturbances.others(before, after)
    assert (steal.grade, others.grade) == ("note", "note")
    assert "13.0%" in steal.says and "6%" in others.says
    quiet = CpuTimes(160, 35, 2000)
    assert {disturbances.steal(before, quiet).grade, disturbances.others(before, quiet).grade} == {"good"}


@pytest.mark.parametrize("stat", ["", "cpu  1 2\n", "intr 1 2 3 4 5 6 7 8 9\n", "cpu a b c d e f g h\n"])
def test_what_cannot_be_read_is_not_known(stat: str) -> None:
    assert disturbances.times(stat) is None
    assert {disturbances.steal(None, None).grade, disturbances.others(None, None).grade} == {"not known"}


@pytest.mark.parametrize(
    ("stat", "found"),
    [
        ("cpu 1 2 4 8 16 32 64 128\n", CpuTimes(1 + 2 + 4 + 32 + 64, 128, 255)),
        ("cpu  1 2 4 8 16 32 64 128 256 512\nintr 7\n", CpuTimes(1 + 2 + 4 + 32 + 64, 128, 255)),
        ("cpu 1 2 4 8 16 32 64\n", None),
        ("cpu0 1 2 4 8 16 32 64 128\n", None),
    ],
)
def test_guests_are_in_other_times_and_a_kernel_may_leave_them_out(stat: str, found: CpuTimes | None) -> None:
    assert disturbances.times(stat) == found


@pytest.mark.parametrize(
    ("after", "of_steal", "of_others"),
    [
        (CpuTimes(100, 10, 1000), "not known", "not known"),
        (CpuTimes(100, 10, 999), "not known", "not known"),
        (CpuTimes(100, 10, 1001), "good", "good"),
        (CpuTimes(119, 19, 2000), "good", "good"),
        (CpuTimes(119, 20, 2000), "note", "good"),
        (CpuTimes(120, 19, 2000), "good", "note"),
    ],
)
def test_a_hundredth_of_the_time_may_not_be_stolen_and_a_fiftieth_not_be_used(
    after: CpuTimes, of_steal: str, of_others: str
) -> None:
    before = CpuTimes(100, 10, 1000)
    assert disturbances.steal(before, after).grade == of_steal
    assert disturbances.others(before, after).grade == of_others
    assert disturbances.steal(before, None).grade == disturbances.others(None, after).grade == "not known"


@pytest.mark.parametrize(("cpus", "grade", "says"), [(1, "note", "one: "), (2, "good", "2: "), (3, "good", "3: ")])
def test_a_machine_with_one_cpu_is_noted(monkeypatch: pytest.MonkeyPatch, cpus: int, grade: str, says: str) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {*range(cpus)} if pid == 0 else set())
    (found,) = disturbances._cpus()
    assert found.grade == grade and found.says.startswith(says)


@pytest.mark.parametrize(
    ("load", "live", "says"),
    [
        (0.5, [], []),
        (0.51, [], ["0.5 programs run on average: something else uses the CPUs"]),
        (0.0, ["aaaaa", "bbbbb"], ["dnsrig is measuring already (aaaaa, bbbbb)"]),
    ],
)
def test_a_machine_that_works_for_others_is_noted(
    monkeypatch: pytest.MonkeyPatch, load: float, live: list[str], says: list[str]
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load, 9.0, 9.0))
    monkeypatch.setattr("dnsrig.lab.ledger.live", lambda: live)
    assert [(remark.grade, remark.says) for remark in disturbances._load()] == [("note", text) for text in says]
