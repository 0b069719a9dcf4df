"""CoreDNS, as a primary only."""

from collections.abc import Mapping
from typing import ClassVar

from dnsrig.servers.driver import DNS_PORT, Driver, Feature, Setting, Support, template
from dnsrig.servers.placement import Placement

CONFIGURATION = template("""\
{% for zone in p.configured_zones %}
{{ zone.name }}:{{ port }} {
    bind {{ p.address }}
    file {{ p.seen_zone_file(zone) }}
    transfer {
        to *
    }
{% for name, value in p.settings.items() %}
    {{ name }} {{ value }}
{% endfor %}
    errors
}
{% endfor %}
""")


class CoreDns(Driver):
    kind = "coredns"
    title = "CoreDNS"
    executable = "coredns"
    packages = ("coredns",)
    version_arguments = ("-version",)
    version_pattern = r"CoreDNS-(\d+\.\d+\.\d+)"
    roles = ("primary",)
    settings = (Setting("cache", "off", "seconds for which an answer is kept"),)
    features: ClassVar[Mapping[Feature, Support]] = {"NOTIFY": Support("1.7", None)}
    log_clock_resolution_ns = 1_000_000_000

    def configure(self, placement: Placement) -> None:
        (placement.directory / "Corefile").write_text(CONFIGURATION.render(p=placement, port=DNS_PORT))

    def command(self, placement: Placement) -> list[str]:
        return [self.executable, "-conf", f"{placement.seen_directory}/Corefile"]

    def log_time_ns(self, line: str) -> int | None:
        return None  # it writes none
