"""Predictions: what a transfer to a far secondary takes, from laws and from what was measured.

One file a law. Each law is a few pure functions in seconds, bytes and fractions, names its source, and says where it
holds and by which factor it may be wrong. `combine` applies all of them to one `scenario`: the slowest binds. `fit`
and `held_out` take the free parameters from measured runs and compare the result with trials that they have not seen.

Nothing here measures anything, and nothing here is a measured result: a report says so wherever it shows one of these
figures.
"""
