"""The first page of an experiment, the list of all experiments, and the history of their runs."""
