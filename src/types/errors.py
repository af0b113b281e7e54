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
    """Raised when the device went away while it worked."""


class DeviceMemoryError(GpusortError, MemoryError):
    """Raised when a call takes more of a device's memory than is free, and cannot be done in pieces; the message says
    how much it takes and how much there is."""


class OutOfBoundsError(GpusortError, IndexError):
    """Raised when a kernel that runs under CPython or the simulator leaves an array."""


class UninitializedReadError(GpusortError, RuntimeError):
    """Raised when a kernel reads workgroup memory or registers that nothing has written."""


class DataRaceError(GpusortError, RuntimeError):
    """Raised by the simulator when two invocations touch one element unordered and one of them writes."""


class BarrierDivergenceError(GpusortError, RuntimeError):
    """Raised when some invocations of a workgroup reach a barrier or subgroup operation and others do not."""


class MonoidError(GpusortError, ValueError):
    """Raised by the simulator and `python` when a monoid is none on the data that it is used on."""


class IterationLimitError(GpusortError, RuntimeError):
    """Raised by the simulator when a loop runs so often that it will hardly end, as one that waits for another does."""


class DiskFullError(GpusortError, OSError):
    """Raised when a disk has no room for a file's runs and its sorted copy; found out before either is written."""
