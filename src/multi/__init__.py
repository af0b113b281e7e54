"""Sorting over several devices of a process, and over several processes: sizes exact, whatever the data."""

from .driving import Communicator
from .sorting import argsort, argsort_shard, sort, sort_by_key, sort_by_key_shard, sort_shard

__all__ = ["Communicator", "argsort", "argsort_shard", "sort", "sort_by_key", "sort_by_key_shard", "sort_shard"]
