"""Comparison: variants of a run, two runs, versions over many runs, thresholds, published figures, bisection."""
