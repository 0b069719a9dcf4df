"""Statistics of a handful of repeats: intervals, exact tests, comparisons within rounds and machines, change points.

Pure functions over numbers: nothing here knows of runs, trials or files.
"""
