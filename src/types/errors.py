"""What gpusort raises. Each class has a standard base, so that `except ValueError` means what one expects."""

from __future__ import annotations


class GpusortError(Exception):
    """The base of all of gpusort's own exceptions."""


class UnsupportedTypeError(GpusortError, TypeError):
    """Raised when an array's dtype, or an argument's type, is one that gpusort does not sort or reduce."""


class InvalidArgumentError(GpusortError, ValueError):
    """Raised when an argument has the right type and a value that makes no sense here."""


class TargetUnavailableError(GpusortError, RuntimeError):
    """Raised when a target is asked for by name and cannot run here; the message says what is missing."""


class CapabilityError(GpusortError, RuntimeError):
    """Raised when a target lacks what a kernel needs (a limit, 64-bit floats, subgroups)."""


class DeviceLostError(GpusortError, RuntimeError):
    """Raised when a device is lost while it works: reset by its driver, or removed."""


class DeviceMemoryError(GpusortError, MemoryError):
    """Raised when a call takes more of a device's memory than is free, and cannot be done in pieces; the message says
    how much it takes and how much there is."""


class RankFailedError(GpusortError, RuntimeError):
    """Raised by a sort over several processes when another process fails in it; the message has that one's error."""


class OutOfBoundsError(GpusortError, IndexError):
    """Raised by targets `python` and `simulator` when a kernel's index is out of bounds."""


class UninitializedReadError(GpusortError, RuntimeError):
    """Raised when a kernel reads workgroup memory or registers that nothing has written."""


class DataRaceError(GpusortError, RuntimeError):
    """Raised by the simulator when two invocations access one element, at least one writes, and nothing orders them."""


class BarrierDivergenceError(GpusortError, RuntimeError):
    """Raised when some invocations of a workgroup reach a barrier or subgroup operation and others do not."""


class MonoidError(GpusortError, ValueError):
    """Raised by the simulator and `python` when a monoid breaks a law on the data: associativity, identity, or
    commutativity where elements are reordered."""


class IterationLimitError(GpusortError, RuntimeError):
    """Raised by the simulator after so many iterations of a loop that it is unlikely to end, such as a spin wait."""


class DiskFullError(GpusortError, OSError):
    """Raised when a disk has no room for a file's runs and its sorted copy; found out before either is written."""


class FileChangedError(GpusortError, OSError):
    """Raised when a file that is being sorted, or that a sort keeps its work in, is written to, replaced or removed by
    somebody else meanwhile; the message says which."""


def told(number: object) -> str:
    """A number in a message: of an int with thousands of digits, which Python refuses to write, its bits."""
    if isinstance(number, int) and number.bit_length() > 256:
        return f"an int of {number.bit_length()} bits"
    return str(number)


def outside(index: int, array: str) -> str:
    """Which index is out of bounds; a U32 close to 2**32 is what a difference below zero has become."""
    below = f", which is {index - (1 << 32)} modulo 2**32," if index >> 31 == 1 else ""
    return f"index {index}{below} is outside {array}"
