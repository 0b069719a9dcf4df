"""What an engine does, seen from outside, as lines of text that two engines can be compared by.

`capture` sees the packets, `wire` makes lines of them, `records` of events, rows and histograms, `stage` starts the
programs, `runs` says what they do. Nothing here knows of dnsrig's own reading of those files: that changes, too.
"""
