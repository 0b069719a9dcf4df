"""PowerDNS with zones whose files are signed already: what it must be told, or it leaves out DNSKEY, RRSIG and NSEC.

Measured with 5.1.5: without all of this it sent 91,371 of the 163,271 records of such a zone. Beside it, its backend
must be allowed to ask for DNSSEC (``dnssec=yes`` of that backend).
"""

from __future__ import annotations

from dnsrig.servers.driver import Preparation
from dnsrig.servers.placement import Placement

PRESIGNED = """INSERT INTO domainmetadata (domain_id, kind, content) SELECT id, 'PRESIGNED', '1' FROM domains
WHERE EXISTS (SELECT 1 FROM records WHERE records.domain_id = domains.id AND records.type = 'RRSIG');
"""
"""Their signatures are those in the table."""

HASHED = """INSERT INTO domainmetadata (domain_id, kind, content)
SELECT domain_id, 'NSEC3PARAM', content FROM records WHERE type = 'NSEC3PARAM';
"""
"""Before they are rectified. Measured with 5.1.5: without it the server made up NSECs, without signatures."""
RECTIFIED = """DELETE FROM cryptokeys;
UPDATE records SET ordername = NULL WHERE type = 'RRSIG' AND content LIKE 'NSEC3 %';
"""
"""After it: the owner of an NSEC3 is no name of the zone, and else has a hash and an NSEC3 of its own, unsigned."""


def rectify(placement: Placement, configuration: str = "") -> list[Preparation]:
    """Tell glue and delegations from what a zone answers for itself, which zone2sql does not: else glue gets NSECs as
    well.

    To be done before it is said that they are presigned: pdnsutil refuses to do it afterwards. It orders hashes of
    names, without which there is no NSEC3, for zones with a key only: so these have one meanwhile. ``configuration`` is
    the name of a configuration that is not the server's own: ``pdns-NAME.conf``.
    """
    if not placement.signed:
        return []
    name = [f"--config-name={configuration}"] if configuration else []
    tool = ["pdnsutil", f"--config-dir={placement.seen_directory}", *name]
    steps = []
    for zone in placement.configured_zones:
        if placement.hashed:
            steps.append(Preparation([*tool, "add-zone-key", zone.name, "ksk", "active", "ecdsa256"]))
        steps.append(Preparation([*tool, "rectify-zone", zone.name]))
    return steps
