"""The wheel on fresh systems: no Rust, no compiler, nothing of this checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dnsrig import cached, paths
from dnsrig.servers import debian

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("apt", "bash", "ca-certificates", "coreutils", "dash", "debian-archive-keyring", "dpkg", "findutils"),
    *("gzip", "libc-bin", "mount", "python3", "python3-venv", "tar", "util-linux", "xz-utils"),
)
"""A minimal Debian with Python; a package of Python and no more is what a user installs."""
LIMIT_S = 900
PROFILE = "release"

ENTER = """
mount --bind {root} {root}
mount -t proc proc {root}/proc
mount --rbind /sys {root}/sys
mount --rbind /dev {root}/dev
mount -t tmpfs tmpfs {root}/run
mkdir -p {root}/etc/apt {root}/etc/ssl/certs {root}/cache {root}/var
rm -rf {root}/var/run
ln -s /run {root}/var/run
mount --rbind /etc/apt {root}/etc/apt
mount --rbind /etc/ssl/certs {root}/etc/ssl/certs
mount --rbind {cache} {root}/cache
cat /etc/resolv.conf >{root}/etc/resolv.conf
printf 'passwd: files\\ngroup: files\\nhosts: files dns\\n' >{root}/etc/nsswitch.conf
exec chroot {root} /bin/bash -eu /steps
"""
"""Only in the mount namespace of the script: nothing of it is left when the script ends."""

STEPS = """
export PATH=/venv/bin:/usr/sbin:/usr/bin DNSRIG_CACHE=/cache HOME=/root
step() { echo "== $SECONDS s: $*"; }
! command -v cc && ! command -v cargo
step python3 -m venv
python3 --version
python3 -m venv /venv
step pip install
pip install --quiet --disable-pip-version-check /wheel/*.whl
step dnsrig --version
dnsrig --version
step dnsrig check
apt-get -qq update
dnsrig check || test $? = 1
step dnsrig run tour
dnsrig run tour --set zones=20 --repeats 1 --runs /runs
report=$(ls /runs/tour/*/report.html)
test -s "$report"
step extras
pip install --quiet --disable-pip-version-check "$(ls /wheel/*.whl)[web,dask]"
step dnsrig browse
dnsrig browse /runs --port 0 >/tmp/address &
browse=$!
python3 - <<'PYTHON'
import pathlib, time, urllib.request
deadline = time.monotonic() + 60
while not (address := pathlib.Path("/tmp/address").read_text().strip()):
    assert time.monotonic() < deadline
    time.sleep(0.1)
assert "<title>" in urllib.request.urlopen(address, timeout=30).read().decode()
PYTHON
kill $browse
step dnsrig run --on a Dask cluster
dnsrig machines certificates /keys
env DASK_CONFIG=/keys/scheduler.json dask scheduler --protocol tls --host 127.0.0.1 --port $PORT --no-dashboard --dashboard-address 127.0.0.1:0 &
scheduler=$!
env DASK_CONFIG=/keys/worker.json dask worker tls://127.0.0.1:$PORT --host 127.0.0.1 --nthreads 1 --resources machine=1 --name rack --no-dashboard --dashboard-address 127.0.0.1:0 --local-directory /tmp/work &
worker=$!
env DASK_CONFIG=/keys/client.json dnsrig run tour --set zones=20 --set server=nsd@forky --repeats 1 --runs /spread --on tls://127.0.0.1:$PORT
test -s /spread/tour/*/report.html
kill $worker $scheduler
step done
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of `make wheel`, but with the engine as it is built already: the profile `dist` takes twenty minutes
    beside other tests, and differs only in its speed; and for an engine that names its commit, Cargo would compile this
    one again. Workers wait for one another."""
    folder = tmp_path_factory.mktemp("wheel")
    words = ["make", "wheel", f"WHEEL_PROFILE={PROFILE}", f"WHEEL_FOLDER={folder}", "WHEEL_COMMIT="]
    with cached.locked(ROOT / "engine/target/wheel"):
        subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    [made] = folder.glob("dnsrig-*.whl")
    return made


@pytest.mark.full
@pytest.mark.servers
@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize(("suite", "port"), [("bookworm", 5392), ("trixie", 5393)])
def test_from_the_wheel_to_a_report(suite: str, port: int, wheel: Path, tmp_path: Path) -> None:
    """Needs minutes: packages of Python are downloaded, as a user does, and five trials are measured."""
    root = tmp_path / "root"
    subprocess.run(["cp", "--archive", debian.build(suite, "wheel", PACKAGES).path, root], check=True)
    (root / "wheel").mkdir()
    shutil.copy(wheel, root / "wheel")
    (root / "steps").write_text(f"PORT={port}\n{STEPS}")
    script = ENTER.format(root=root, cache=paths.cache())
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-euc", script]
    result = subprocess.run(
        command, env=without_packages(), capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    print(result.stdout, result.stderr)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    assert f"profile {PROFILE}" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("== ")


def without_packages() -> dict[str, str]:
    """This environment without what leads Python to packages of this machine."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV", "UV_", "DNSRIG_"))
    }
