"""Rewrites of the IR: each takes a Program and gives one."""
