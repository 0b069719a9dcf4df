"""What an engine does, seen from outside, as lines of text that two engines can be compared by.

`bench` starts the engine's programs, `peers` talk with them, `capture` sees the packets, `wire` makes lines of them and
`records` of events, rows and histograms. `runs` says what is done. Nothing here uses dnsrig's own readers of those
files: they change, too.
"""
