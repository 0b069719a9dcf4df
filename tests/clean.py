"""Trials in which nothing is wrong: settings of each built-in experiment that leave one variant and no trap anything to find.

Servers' own limits are lifted, and the servers are those whose logs have a fine clock, for a coarse one is a finding.
"""

from __future__ import annotations

BIND = ("server=bind@forky", 'hosts.secondary.settings."serial-query-rate"=10000')
RAISED = ('hosts.secondary.settings."transfers-in"=100', 'hosts.secondary.settings."transfers-per-ns"=100')
NSD = ("server=nsd@forky", 'hosts.secondary.settings."xfrd-reload-timeout"=0')
ALONE = "baseline={}"
MAY_BE_UNSURE = {
    "cpu-contention",  # a trial of less than half a second
    "cold-page-cache",  # a secondary writes, and what it writes looks like what is read
    "connect-port-search",  # less than half a second of CPU time
    "server-rate-limit",  # one zone has no rate
}
"""Traps that may say `cannot-tell` of a clean trial, and why."""

CLEAN: list[tuple[str, tuple[str, ...]]] = [
    ("tour", (*BIND, *RAISED, "zones=300")),
    ("many-zones", ("server=bind@forky", "zones=1000", "provisioning=static", "transport=tcp")),
    ("many-zones", ("server=bind@forky", "zones=1000", "provisioning=catalog", "transport=tcp")),
    ("many-zones", ("server=bind@forky", "zones=300", "provisioning=static", "transport=xot")),
    ("tld-transfer", ("server=bind@forky", "transport=tcp", ALONE)),
    ("tld-transfer", ("server=nsd@forky", "transport=tcp+tsig", ALONE)),
    ("tld-transfer", ("server=bind@forky", "transport=xot", ALONE)),
    ("tld-transfer", ("server=nsd@forky", "transport=xot+tsig", ALONE)),
    ("smallest-zone", NSD),
    ("zone-load", ("server=bind@forky", "page_cache=warm", ALONE)),
    ("zone-load", ("server=knot@forky", "page_cache=warm", ALONE)),
    ("zone-load", ("server=nsd@forky", "page_cache=warm", ALONE)),
    (
        "time-wait",
        (
            "host=defaults",
            'hosts.secondary.settings.bind."serial-query-rate"=10000',
            "dataset.zones=600",
            ALONE,
        ),
    ),
    ("server-defaults", ("server=bind@forky", "settings=raised", ALONE)),
    ("storage", ("server=bind@forky", "storage=memory", ALONE)),
    ("several-primaries", ("server=bind@forky", "primaries=2", ALONE)),
    ("zone-update", ("server=bind@forky", "ixfr=true", ALONE)),
    ("zone-update", ("server=knot@forky", "ixfr=false", ALONE)),
    ("zone-update", ("server=nsd@forky", "ixfr=true", ALONE)),
]
"""(experiment, settings that leave one variant)."""
