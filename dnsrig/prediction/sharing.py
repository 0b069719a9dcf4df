"""Sharing: what all sites take from one primary at the same time.

A primary's uplink carries each zone once a site; its CPU answers each zone once a site. Both grow with the sites, where
everything else here is each site's own. Equal shares are assumed: sites that start together, over paths that are alike.
It was not compared with any measurement of many far sites.
"""

from __future__ import annotations

SOURCE = "volume / speed, and work / speed, of a primary that all sites share equally"
FACTOR = 1.2
"""Assumed: the factor of a link (`volume.FACTOR`), and a little for shares that are not equal."""


def uplink_time_s(bytes_per_site: float, sites: int, uplink_bytes_per_s: float) -> float:
    """Until all of ``sites`` have ``bytes_per_site``."""
    if bytes_per_site < 0 or sites < 1 or uplink_bytes_per_s <= 0:
        raise ValueError(f"{bytes_per_site} bytes to {sites} sites at {uplink_bytes_per_s} bytes a second")
    return bytes_per_site * sites / uplink_bytes_per_s


def work_time_s(zones: int, sites: int, cpu_s_per_zone: float) -> float:
    """Until a primary of one CPU has answered every zone to every site."""
    if min(zones, sites, cpu_s_per_zone) < 0:
        raise ValueError(f"{zones} zones to {sites} sites, {cpu_s_per_zone} s a zone")
    return zones * sites * cpu_s_per_zone
