"""Fits policies to a target's limits and capabilities, before a schedule is made.

Tiles and workgroups shrink; strands follow the target's subgroup size; without subgroups, masks in workgroup memory
take their place; without forward progress, a sweep becomes counting launches. CapabilityError: nothing fits.
Workgroup memory is counted by what is live at one time (see kernel/passes/overlay.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ..kernel.launch import Grid
from ..machine import Capability, Limits, TargetInfo
from ..types import params
from ..types.elements import WORD_BYTES, bytes_held
from ..types.errors import CapabilityError
from ..types.keys import SortableKey
from ..types.params import BitonicPolicy, MergePolicy, RadixPolicy, ReducePolicy, ScanPolicy
from .batch import LOOPING_GROUPS, looping_grid
from .partition import BUCKETS, MOST_ITEMS, BucketCounts

_LEAST_LANES = 8  # smaller subgroups do not pay
_MANY_STRANDS = 128  # kernels unroll over strands
PLAIN_GROUP = 256


def power_below(most: int) -> int:
    """The greatest power of two that is at most `most`."""
    return 1 << (max(1, most).bit_length() - 1)


def plain_group(limits: Limits) -> int:
    """The size of a workgroup by which nothing is tuned, a power of two."""
    return min(PLAIN_GROUP, power_below(limits.group_size))


def plain_grid(count: int, limits: Limits) -> Grid:
    """The grid of a kernel whose invocations each loop over elements, and share nothing."""
    return looping_grid(count, plain_group(limits), min(LOOPING_GROUPS, limits.groups))


def has_whole_subgroups(group_size: int, info: TargetInfo) -> bool:
    """Whether a workgroup consists of whole subgroups, whichever of the target's sizes they have, and these pay."""
    limits = info.limits
    most = max(limits.subgroup_size, limits.most_subgroup_size)
    are_worth_it = limits.subgroup_size >= _LEAST_LANES and most <= params.WIDE_MASK_LANES
    return Capability.SUBGROUPS in info.capabilities and are_worth_it and group_size % most == 0


def fitted_network(policy: BitonicPolicy, word: object, limits: Limits) -> BitonicPolicy:
    """Fits a bitonic sort of such words; raises CapabilityError if not two of them fit into workgroup memory."""
    held = _held("algorithm: a word in a bitonic sort", bytes_held(word), limits, least=2)
    tile, group_size = min(policy.tile, power_below(held)), min(policy.group_size, power_below(limits.group_size))
    return attrs.evolve(policy, tile=tile, group_size=group_size)


def fitted_radix(
    policy: RadixPolicy, key: SortableKey[Any, Any], key_bits: int, info: TargetInfo, value_bytes: int = 0
) -> RadixPolicy:
    """Fits a radix sort of such keys, with values of `value_bytes`; raises CapabilityError where nothing fits."""
    word = bytes_held(key.word)
    element = max(word, value_bytes)  # values take the place of the words in the tile
    sweeps = policy.sweeps and Capability.FORWARD_PROGRESS in info.capabilities
    most = min(info.limits.group_size, info.limits.groups)  # the scan of counts has a workgroup for each digit value
    for bits in range(min(policy.digit_bits, most.bit_length() - 1), 0, -1):
        for size in _sizes(policy.group_size, info.limits.group_size, 1 << bits):
            copies = min(policy.copies, info.limits.workgroup_bytes // (WORD_BYTES * -(-key_bits // bits) << bits))
            rest = attrs.evolve(
                policy, digit_bits=bits, group_size=size, **lanes_of(policy, size, info), copies=max(1, copies),
                count_group=min(policy.count_group, info.limits.group_size),
                count_groups=min(policy.count_groups, info.limits.groups), sweeps=sweeps and bits > 1 and copies > 0,
            )  # fmt: skip
            if rest.strands > _MANY_STRANDS:
                continue
            rest = attrs.evolve(rest, items=in_registers(policy.items, key.word, info.limits))
            items = _items(rest, word, element, info.limits.workgroup_bytes)
            if items:
                return attrs.evolve(rest, items=items)
    raise no_radix(info)


def digits_in_tile(policy: RadixPolicy, word: int, info: TargetInfo) -> int:
    """The digit bits for which a tile of words and all counters fit into workgroup memory together; 0 if none do."""
    for bits in range(policy.digit_bits, 0, -1):
        tried = attrs.evolve(policy, digit_bits=bits)
        held = tried.tile * word + WORD_BYTES * (tried.counters + tried.scanned)
        if policy.group_size <= info.limits.group_size and held <= info.limits.workgroup_bytes:
            return bits
    return 0


def lanes_of(policy: RadixPolicy, group_size: int, info: TargetInfo) -> dict[str, Any]:
    """The fields of a policy that say which lanes rank together: a subgroup, or a strand with masks."""
    if policy.subgroups and has_whole_subgroups(group_size, info):
        return {"subgroups": True, "strand": info.limits.subgroup_size}
    most = params.MASK_LANES if policy.subgroups else policy.strand
    return {"subgroups": False, "strand": max(n for n in range(1, most + 1) if group_size % n == 0)}


def _sizes(wished: int, most: int, least: int) -> Iterator[int]:
    """Workgroup sizes to try: the preferred one, then powers of two down to `least`."""
    if wished <= most:
        yield wished
    size = power_below(min(wished, most))
    while size >= least:
        yield size
        size //= 2


def _items(policy: RadixPolicy, word: int, element: int, workgroup_bytes: int) -> int:
    """The items for each invocation that fit, at most the policy's; 0 if not one does."""
    counting = WORD_BYTES * (policy.counters + policy.scanned + policy.radix)
    apart = WORD_BYTES * (policy.scanned + policy.radix)  # what cannot be overlaid with the tile
    if counting > workgroup_bytes:
        return 0
    most = (workgroup_bytes - apart) // element
    if policy.sweeps:  # which fills the tile while counters are live
        most = min(most, (workgroup_bytes - counting) // word)
    return min(policy.items, most // policy.group_size)


def no_radix(info: TargetInfo) -> CapabilityError:
    limits = info.limits
    return CapabilityError(
        f"algorithm: target {info.name!r} has workgroups of at most {limits.group_size} invocations with "
        f"{limits.workgroup_bytes} bytes of workgroup memory, and {limits.groups} of them in a launch, which is too "
        "little for a radix sort; Bitonic() sorts with less"
    )


def fitted_merge(policy: MergePolicy, key: SortableKey[Any, Any], info: TargetInfo) -> MergePolicy:
    """Fits a merge. Invocations that share a tile have it and its permutation in workgroup memory."""
    if policy.group_size == 1:
        return policy
    held = _held("key: an element to merge", bytes_held(key.element) + WORD_BYTES, info.limits)
    most = min(info.limits.group_size, held)
    size = policy.group_size if policy.group_size <= most else power_below(most)
    return attrs.evolve(policy, group_size=size, items=min(policy.items, held // size))


def fitted_reduce(policy: ReducePolicy, state: object, info: TargetInfo) -> ReducePolicy:
    """Fits a reduction to such states; raises CapabilityError if no state fits into workgroup memory or registers."""
    limits = info.limits
    most = min(limits.group_size, _held("policy: a state", bytes_held(state), limits))
    size = policy.group_size if policy.group_size <= most else power_below(most)
    return attrs.evolve(
        policy, group_size=size, items=min(policy.items, _registers(state, limits)),
        groups=min(policy.groups, limits.groups), subgroups=policy.subgroups and has_whole_subgroups(size, info),
        strand=_fitted_strand(policy, size, info),
    )  # fmt: skip


def fitted_scan_policy(policy: ScanPolicy, state: object, info: TargetInfo) -> ScanPolicy:
    """Fits a scan to such states; raises CapabilityError if not two states fit into workgroup memory."""
    limits = info.limits
    held = _held("policy: a state", bytes_held(state), limits, least=2)
    # A tile, of an item each at least or of whole columns, and a state for each invocation.
    most = max(1, min(limits.group_size, held // (1 + (policy.items if policy.alone else 1))))
    size = policy.group_size if policy.group_size <= most else power_below(most)
    items = min(policy.items, held // size - 1, _registers(state, limits))
    return attrs.evolve(
        policy, group_size=size, items=items, groups=min(policy.groups, limits.groups),
        subgroups=policy.subgroups and scans_by_subgroups(size, info),
        strand=_fitted_strand(policy, size, info),
    )  # fmt: skip


def _fitted_strand(policy: ReducePolicy | ScanPolicy, group_size: int, info: TargetInfo) -> int:
    """The lanes of a subgroup that share a row."""
    are_whole = policy.subgroups and has_whole_subgroups(group_size, info)
    return power_below(min(policy.strand, info.limits.subgroup_size)) if are_whole else 1


def lanes_within(wished: int, info: TargetInfo) -> int:
    """The lanes that share a row by shuffles: of those wished as many as a subgroup and a workgroup have, a power of
    two."""
    there = info.limits.subgroup_size if Capability.SUBGROUPS in info.capabilities else 1
    return power_below(min(wished, there, info.limits.group_size))


def scans_by_subgroups(group_size: int, info: TargetInfo) -> bool:
    """Whether a workgroup can scan by shuffles: in whole subgroups, or within one."""
    is_within_one = Capability.SUBGROUPS in info.capabilities and group_size <= info.limits.subgroup_size
    return is_within_one or has_whole_subgroups(group_size, info)


def fitted_partition(policy: ScanPolicy, key: SortableKey[Any, Any], info: TargetInfo) -> ScanPolicy:
    """Fits a partition of such elements: a tile of words and every invocation's counts are in workgroup memory."""
    fitted = fitted_scan_policy(policy, BucketCounts, info)
    room = info.limits.workgroup_bytes - (fitted.group_size + 1) * bytes_held(BucketCounts) - 3 * BUCKETS * WORD_BYTES
    most = room // (fitted.group_size * bytes_held(key.word))
    return attrs.evolve(fitted, items=min(policy.items, MOST_ITEMS, most))


def _held(what: str, nbytes: int, limits: Limits, least: int = 1) -> int:
    """How many of something fit into workgroup memory; raises CapabilityError for fewer than `least`."""
    held = limits.workgroup_bytes // nbytes
    if held < least:
        raise CapabilityError(
            f"{what} takes {nbytes} bytes of workgroup memory, of which the target has {limits.workgroup_bytes}; "
            f"{least} must fit"
        )
    return held


def in_registers(wished: int, element: object, limits: Limits) -> int:
    """As many elements as an array of registers holds, at most those wished, and one at least."""
    return max(1, min(wished, limits.register_bytes // bytes_held(element)))


def _registers(state: object, limits: Limits) -> int:
    """The states that half an array of registers holds, at least one; raises CapabilityError for one that needs more
    than a whole array. Wide states' kernels take compilers a time that grows with the square of their number."""
    held = bytes_held(state)
    if held > limits.register_bytes:
        raise CapabilityError(
            f"policy: a state takes {held} bytes of registers, of which the target has {limits.register_bytes} for an "
            "array"
        )
    return max(1, limits.register_bytes // (2 * held))
