"""Calls with host arrays beyond a device's memory: each in pieces that fit."""
