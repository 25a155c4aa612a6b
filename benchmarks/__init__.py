"""Measurements of speed and memory, as ratios in one run. Each process uses its machine as ``vitcapr`` does."""

from vitcapr.commands.main import prepare_process

prepare_process()
