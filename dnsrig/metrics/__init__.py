"""Metrics: each is a function over a trial, in a module of this folder or of another package.

Each states its unit, whether lower or higher is better, and the exact start and end of what it measures. To add one,
add a function with ``@metric`` in a new file here, or in a plug-in (`dnsrig.discovery`). No other change is needed.
"""

from dnsrig.runs.metric import Better, Metric, all_metrics, metric

__all__ = ["Better", "Metric", "all_metrics", "metric"]
