"""Reading a run, metrics, statistics. Reads run directories only; never imports the lab."""
