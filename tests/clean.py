"""Trials in which nothing is wrong: settings of each built-in experiment that leave one variant and no trap anything to
find.

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
    "blocked-thread",  # some thousand queries a second are few for each of 16 clients
    "ttls-expire-together",  # some seconds have no three periods
    "cold-first-interval",  # one pause of the machine in the first second looks the same
}
"""Traps that may say `cannot-tell` of a clean trial, and why."""

TRUE_HERE = {"mean-hides-tail"}
"""Traps that may be right of a clean trial: a server that answers in 0.05 ms has a tail on a machine whose tick is 4
ms."""

EMPTY_CACHE = (
    "qname-minimisation",
    "dnssec-validation",
    "dnssec-heavy",
    "signed-share",
    "dnssec-algorithms",
    "aggressive-nsec",
    "broken-world",
    "downsampling",
)
"""Resolvers that begin with one: their first second is the slowest, as it should be."""

TRUE_OF = {
    **{name: {"cold-first-interval"} for name in EMPTY_CACHE},
    "workers": {"coarse-log-clock"},  # Knot DNS, which alone has so many workers to set, has a log with whole seconds
    "large-records": {"silent-start"},  # it measures no time
    "dnssec-heavy": {"cold-first-interval", "warm-cache"},  # at half of the capacity not all of the stream is sent
}

DELAYED = 'hosts.secondary.settings.echo.delay="20ms"'
"""Beside it what the machine adds is small."""

NEAR = ("path.delay_ms=1", "path.jitter_ms=0", "path.loss_percent=0")
"""Over S3's link workers wait for round trips, which is a finding."""

CLEAN: list[tuple[str, tuple[str, ...]]] = [
    ("tour", (*BIND, *RAISED, "zones=300")),
    ("many-zones", ("server=bind@forky", "zones=1000", "provisioning=static", "transport=tcp")),
    ("many-zones", ("server=bind@forky", "zones=1000", "provisioning=catalog", "transport=tcp")),
    ("many-zones", ("server=bind@forky", "zones=300", "provisioning=static", "transport=xot")),
    ("connection-policy", ("server=nsd@forky", "policy=pipelined", "transport=tcp", ALONE)),
    ("connection-policy", ("server=bind@forky", "policy=one", "transport=tcp", ALONE)),
    ("interrogation", ("server=nsd@forky",)),
    ("large-records", ('primary=["knot@forky"]', 'secondary=["nsd@forky"]', 'method=["axfr"]', NSD[1])),
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
    ("echo-baseline", ("rate_qps=2000", "transport=udp", 'hosts.primary.settings.delay="20ms"', ALONE)),
    ("static-secondary", ("server=echo@engine", DELAYED)),
    ("catalog-churn", ("server=echo@engine", "changes=none", DELAYED, ALONE)),
    ("capacity", ("server=bind@forky", "changes=none", ALONE)),
    ("startup", ("server=bind@forky", "zones=1000", "as=primary", ALONE)),
    ("propagation", ("server=bind@forky", "secondaries=1", "changes=single", ALONE)),
    ("fan-out", ("server=nsd@forky", "secondaries=100", "by=IXFR", "limits=raised", ALONE)),
    ("ixfr-stream", ("server=nsd@forky", "records_changed=100", "made_by=reload", ALONE)),
    ("busy-primary", ("server=bind@forky", "size=tiny", "transfers=none", ALONE)),
    ("congestion-control", ("congestion=cubic", ALONE)),
    ("xoq", ("server=zones@engine", "case=many-zones", "site=s3", 'transport="xoq (pipelined)"', ALONE)),
    ("emulators", ('emulator="tun, running kernel"', "congestion=bbr", ALONE)),
    ("mtu-mss", ("transport=tcp", "icmp=sent", "mss=interface", ALONE)),
    ("long-distance", ("case=one-large-zone", 'carrier="pipelined from nsd"', "congestion=bbr", ALONE)),
    ("workers", ("workers=50", "connections=reused", *NEAR)),
    ("generation-cycle", ("server=knot@forky", "congestion=bbr", "changed_percent=3.0", "path.loss_percent=0", ALONE)),
    ("replay-fidelity", ("qps=1000", "clients=20000", 'hosts.primary.settings.delay="20ms"')),
    ("authoritative-replay", ("server=nsd@forky", "traffic=clients", ALONE)),
    ("dot-clients", ("server=echo@engine", "connections=early", ALONE)),
    ("resolver-cache", ("names=cached", "transport=udp", "options.warmup_s=3", ALONE)),
    ("qname-minimisation", ("server=unbound@forky", "qname_minimisation=true", ALONE)),
    ("dnssec-validation", ("server=unbound@forky", "level=validating", ALONE)),
    ("signed-share", ("server=unbound@forky", "level=validating", 'signed="93 %"', ALONE)),
    ("dnssec-algorithms", ("server=unbound@forky", "algorithm=Ed25519", ALONE)),
    ("aggressive-nsec", ("server=unbound@forky", "aggressive_nsec=true", "denial=NSEC", ALONE)),
    ("cold-minute", ("server=unbound@forky", "cache=warm", ALONE)),
    ("resolver-overload", ("server=unbound@forky", "options.flood_qps=200", ALONE)),
    ("broken-world", ("server=unbound@forky", "broken=lame", ALONE)),
    ("downsampling", ("server=unbound@forky", "sample=all", ALONE)),
    ("dnssec-heavy", ("server=unbound@forky", "level=validating", ALONE)),
    ("resolver-capacity", ("server=bind@forky", 'hits="90 %"', ALONE)),
    ("transports", ("server=bind@forky", "transport=doh", ALONE)),
    ("transports", ("server=echo@engine", "transport=doq", "options.ramp_most_qps=20000", ALONE)),
    ("handshakes", ("server=echo@engine", "transport=dot", "handshake=full", "options.ramp_most_qps=1000", ALONE)),
    ("connection-memory", ("server=bind@forky", "transport=dot", ALONE)),
    ("resolver-transports", ("server=unbound@forky", "transport=dot", ALONE)),
    ("lossy-transports", ("transport=doq", "loss_percent=0.0", 'outstanding="10 in 100 ms"', ALONE)),
    (
        "connections-held",
        ("server=knot@forky", "transport=tcp", "held=1000", "limits=raised", "options.rate_qps=500", ALONE),
    ),
    ("fair-table", ("server=nsd@forky", "options.ramp_most_qps=20000", ALONE)),
    ("fair-table-forwarders", ('server="unbound-forwarder@forky"', "cached=all", "options.ramp_most_qps=5000", ALONE)),
]
"""(experiment, settings that leave one variant)."""
