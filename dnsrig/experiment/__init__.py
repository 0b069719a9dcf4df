"""Experiments: the model (what a TOML file means), the plan (order of trials), the runner, the trial."""
