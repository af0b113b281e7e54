"""Distributed sorting over several devices of a process, or over several processes, with exact result sizes."""

from .communicators import Communicator
from .sorting import argsort, argsort_shard, sort, sort_by_key, sort_by_key_shard, sort_shard

__all__ = ["Communicator", "argsort", "argsort_shard", "sort", "sort_by_key", "sort_by_key_shard", "sort_shard"]
