"""Classes of clients of a replay, from the option ``classes``: shares of the clients with transports of their own.

An example is ``share=20%,transport=dot,early-data=yes; share=5%,transport=tcp,reuse=no``. The settings are the settings
of `replay play --class`, with semicolons between classes. This module has no I/O.
"""

from __future__ import annotations

from dnsrig.errors import UsageError
from dnsrig.rundir import TrialSpec
from dnsrig.text import digits

YES_OR_NO = ("yes", "no")
TRANSPORTS = ("as-captured", "udp", "tcp", "dot", "doh", "doq")
CHOICES = {
    "transport": TRANSPORTS,
    "reuse": YES_OR_NO,
    "resumption": YES_OR_NO,
    "early-data": YES_OR_NO,
}
SETTINGS = ("share", "idle", *CHOICES)
MOST = 15
ROUNDING = 1e-9
"""How much floating-point errors may raise the sum of all shares."""


def parse(text: str) -> list[dict[str, str]]:
    """Settings of each class.

    >>> parse("share=20%,transport=dot; share=0.05,reuse=no")
    [{'share': '20%', 'transport': 'dot'}, {'share': '0.05', 'reuse': 'no'}]
    """
    found = [_settings(one) for one in text.split(";") if one.strip()]
    if len(found) > MOST:
        raise _wrong(text, f"there may be {MOST} classes")
    if (total := sum(_share(one["share"], text) for one in found)) > 1 + ROUNDING:
        raise _wrong(
            text, f"the shares are {digits(100 * total, 6)} % of the clients together: lower them to 100 % at most"
        )
    return found


def arguments(text: str) -> list[str]:
    """Arguments of `replay play`."""
    return ["--class=" + ",".join(f"{key}={value}" for key, value in one.items()) for one in parse(text)]


def asks_for(text: str, *settings: str) -> bool:
    """Whether a class has one of the ``settings`` with the value yes."""
    return any(one.get(setting) == "yes" for one in parse(text) for setting in settings)


def over_tls(spec: TrialSpec) -> bool:
    """Whether clients of a trial query the server under test over TLS (DoT, RFC 7858)."""
    return _over(spec, "dot")


def over_https(spec: TrialSpec) -> bool:
    """Whether clients of a trial query the server under test over HTTPS (DoH, RFC 8484)."""
    return _over(spec, "doh")


def over_quic(spec: TrialSpec) -> bool:
    """Whether clients of a trial query the server under test over QUIC (DoQ, RFC 9250)."""
    return _over(spec, "doq")


def _over(spec: TrialSpec, transport: str) -> bool:
    """Whether clients use ``transport``: by the options, or because queries of a stream were captured over it."""
    classes = parse(str(spec.options.get("classes", "")))
    asked = {spec.options.get("transport"), *(one.get("transport") for one in classes)}
    captured = spec.stream.transports if spec.stream is not None and "as-captured" in asked else {}
    return transport in asked or transport in captured


def _settings(text: str) -> dict[str, str]:
    pairs = [setting.partition("=") for setting in text.strip().split(",")]
    found = {key.strip(): value.strip() for key, _, value in pairs}
    if unknown := sorted(found.keys() - set(SETTINGS)):
        raise _wrong(text, f"{unknown[0]!r} is not one of {', '.join(SETTINGS)}")
    if len(found) < len(pairs):
        raise _wrong(text, "a setting is given twice")
    if "share" not in found:
        raise _wrong(text, "a class needs a share of the clients, such as share=20%")
    for key, known in CHOICES.items():
        if found.get(key, known[0]) not in known:
            raise _wrong(text, f"{key} is one of {', '.join(known)}")
    no_tls = found.get("transport") in ("udp", "tcp")
    if found.get("early-data") == "yes" and (no_tls or found.get("resumption") == "no"):
        raise _wrong(text, "early data goes with a resumed session: transport=dot or doq, and not resumption=no")
    if found.get("early-data") == "yes" and found.get("transport") == "doh":
        raise _wrong(text, "replays send no early data over DoH: leave early-data=yes out, or use transport=dot or doq")
    return found


def _share(text: str, classes: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise _wrong(classes, "a share is above 0 and at most 100%, such as 20% or 0.2")
    return share


def _wrong(text: str, hint: str) -> UsageError:
    return UsageError(f"options.classes: {text.strip()!r}", hint=hint)
