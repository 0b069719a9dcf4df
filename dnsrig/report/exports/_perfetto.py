"""A trace for Perfetto, written packet by packet (TrackEvent,
https://perfetto.dev/docs/reference/synthetic-track-event).

The messages are from Perfetto's own Python package, which its project keeps: 2 MB beside the protobuf library, and
no field number has to be copied. Each packet goes to the file at once, so a trial with a million samples needs no
memory for them.

All times are CLOCK_MONOTONIC nanoseconds. The trace says so, and how that clock lies to the wall clock: the viewer
shows both. Names come from servers and zones, and pass `dnsrig.text.visible`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BuiltinClock,
    CounterDescriptor,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from dnsrig.rundir import Anchor
from dnsrig.text import visible

SEQUENCE = 1
"""All packets are of one writer."""
BYTES = "bytes"
"""The one unit that the viewer scales by itself."""


class Trace:
    """What is written to one file. Tracks are numbered in the order in which they are asked for."""

    def __init__(self, file: IO[bytes], anchors: Iterable[Anchor], pid: int) -> None:
        """``anchors``: readings of both clocks; ``pid``: of the server under test, for its stacks."""
        self._builder = StreamingTraceProtoBuilder(file)
        self._tracks = 0
        self._frames: dict[str, int] = {}
        self._stacks: dict[tuple[str, ...], int] = {}
        self._pid = pid
        for at in dict.fromkeys((anchor.monotonic_ns, anchor.realtime_ns) for anchor in anchors) or [(0, None)]:
            self._clocks(*at)
        packet = self._packet(TracePacket.SEQ_INCREMENTAL_STATE_CLEARED)
        packet.trace_packet_defaults.timestamp_clock_id = BuiltinClock.BUILTIN_CLOCK_MONOTONIC
        self._builder.write_packet(packet)

    def track(self, name: str, parent: int | None = None) -> int:
        """A track below ``parent``. Those with one name and parent are drawn as one."""
        return self._track(name, parent)

    def counter(self, name: str, unit: str, parent: int | None = None) -> int:
        """A track of values, which `value` gives."""
        counter = CounterDescriptor(unit_name=unit)
        if unit == BYTES:
            counter = CounterDescriptor(unit=CounterDescriptor.UNIT_SIZE_BYTES)
        return self._track(name, parent, counter=counter)

    def value(self, track: int, time_ns: int, value: float) -> None:
        """What a counter is from ``time_ns`` until its next value; whole numbers stay whole."""
        number: dict[str, Any] = {"counter_value": value} if isinstance(value, int) else {"double_counter_value": value}
        self._event(time_ns, TrackEvent(type=TrackEvent.TYPE_COUNTER, track_uuid=track, **number))

    def slice(
        self, track: int, name: str, start_ns: int, end_ns: int, told: dict[str, str | int] | None = None
    ) -> None:
        """Something that lasted. Slices of one track are apart, or one within the other. ``told``: its arguments."""
        begin = TrackEvent(type=TrackEvent.TYPE_SLICE_BEGIN, track_uuid=track, name=visible(name))
        for key, value in (told or {}).items():
            argument = begin.debug_annotations.add(name=visible(key))
            if isinstance(value, int):
                argument.int_value = value
            else:
                argument.string_value = visible(value)
        self._event(start_ns, begin)
        self._event(max(start_ns, end_ns), TrackEvent(type=TrackEvent.TYPE_SLICE_END, track_uuid=track))

    def instant(self, track: int, name: str, time_ns: int) -> None:
        """Something that happened."""
        self._event(time_ns, TrackEvent(type=TrackEvent.TYPE_INSTANT, track_uuid=track, name=visible(name)))

    def stack(self, time_ns: int, frames: tuple[str, ...]) -> None:
        """A sample of the CPU stack of the server under test, outermost frame first."""
        packet = self._packet(TracePacket.SEQ_NEEDS_INCREMENTAL_STATE)
        packet.timestamp = time_ns
        sample = packet.perf_sample
        sample.pid, sample.tid = self._pid, self._pid
        sample.callstack_iid = self._callstack(packet.interned_data, frames)
        self._builder.write_packet(packet)

    def _callstack(self, interned: Any, frames: tuple[str, ...]) -> int:
        """The number of a stack; what the trace did not know of it goes into ``interned``."""
        if frames in self._stacks:
            return self._stacks[frames]
        if not self._stacks:
            # Every frame must belong to a program; folded stacks do not name it.
            interned.mappings.add(iid=1)
        for frame in frames:
            if frame not in self._frames:
                number = self._frames[frame] = len(self._frames) + 1
                interned.function_names.add(iid=number, str=visible(frame).encode(errors="replace"))
                interned.frames.add(iid=number, function_name_id=number, mapping_id=1)
        number = self._stacks[frames] = len(self._stacks) + 1
        interned.callstacks.add(iid=number, frame_ids=[self._frames[frame] for frame in frames])
        return number

    def _track(self, name: str, parent: int | None, **more: Any) -> int:
        self._tracks += 1
        packet = self._packet(TracePacket.SEQ_NEEDS_INCREMENTAL_STATE)
        packet.track_descriptor.CopyFrom(TrackDescriptor(uuid=self._tracks, name=visible(name), **more))
        if parent is not None:
            packet.track_descriptor.parent_uuid = parent
        self._builder.write_packet(packet)
        return self._tracks

    def _event(self, time_ns: int, event: TrackEvent) -> None:
        packet = self._packet(TracePacket.SEQ_NEEDS_INCREMENTAL_STATE)
        packet.timestamp = time_ns
        packet.track_event.CopyFrom(event)
        self._builder.write_packet(packet)

    def _packet(self, flags: int) -> TracePacket:
        packet: TracePacket = self._builder.create_packet()
        packet.trusted_packet_sequence_id, packet.sequence_flags = SEQUENCE, flags
        return packet

    def _clocks(self, monotonic_ns: int, realtime_ns: int | None) -> None:
        """How the clocks lie to each other; without the wall clock, which one the times are of."""
        packet = self._packet(0)
        snapshot = packet.clock_snapshot
        snapshot.primary_trace_clock = BuiltinClock.BUILTIN_CLOCK_MONOTONIC
        snapshot.clocks.add(clock_id=BuiltinClock.BUILTIN_CLOCK_MONOTONIC, timestamp=monotonic_ns)
        if realtime_ns is not None:
            snapshot.clocks.add(clock_id=BuiltinClock.BUILTIN_CLOCK_REALTIME, timestamp=realtime_ns)
        self._builder.write_packet(packet)
