# What gpusort uses of wgpu, checked against 0.29 and 0.32. The package annotates most of its methods, but has
# no py.typed, names plain dicts and sets, and says `memoryview | object` where it always gives a memoryview.
from collections.abc import Sequence
from typing import Final, Literal, NotRequired, TypedDict, type_check_only

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer, deprecated

__version__: str

_Flags = int | str
# NumPy says that its arrays are buffers from Python 3.12 on.
_Data = Buffer | npt.NDArray[np.generic]
_PowerPreference = Literal["low-power", "high-performance"]
_BufferBindingType = Literal["uniform", "storage", "read-only-storage"]
_MapState = Literal["unmapped", "pending", "mapped"]

class BufferUsage:
    MAP_READ: Final = 1
    MAP_WRITE: Final = 2
    COPY_SRC: Final = 4
    COPY_DST: Final = 8
    UNIFORM: Final = 64
    STORAGE: Final = 128
    INDIRECT: Final = 256
    QUERY_RESOLVE: Final = 512

class MapMode:
    READ: Final = 1
    WRITE: Final = 2

class ShaderStage:
    COMPUTE: Final = 4

class BufferBindingType:
    uniform: Final = "uniform"
    storage: Final = "storage"
    read_only_storage: Final = "read-only-storage"

class PowerPreference:
    low_power: Final = "low-power"
    high_performance: Final = "high-performance"

class QueryType:
    occlusion: Final = "occlusion"
    timestamp: Final = "timestamp"

# The package also has a class for each of these; a plain dict says the same and costs less to build.
@type_check_only
class _BufferBindingLayout(TypedDict):
    type: NotRequired[_BufferBindingType]
    has_dynamic_offset: NotRequired[bool]
    min_binding_size: NotRequired[int]

@type_check_only
class _BindGroupLayoutEntry(TypedDict):
    binding: int
    visibility: _Flags
    buffer: _BufferBindingLayout

@type_check_only
class _BufferBinding(TypedDict):
    buffer: GPUBuffer
    offset: NotRequired[int]
    size: NotRequired[int | None]

@type_check_only
class _BindGroupEntry(TypedDict):
    binding: int
    resource: _BufferBinding | GPUBuffer

@type_check_only
class _ProgrammableStage(TypedDict):
    module: GPUShaderModule
    entry_point: NotRequired[str | None]
    constants: NotRequired[dict[str, float] | None]

@type_check_only
class _ComputePassTimestampWrites(TypedDict):
    query_set: GPUQuerySet
    beginning_of_pass_write_index: NotRequired[int | None]
    end_of_pass_write_index: NotRequired[int | None]

class GPUError(Exception):
    def __init__(self, message: str) -> None: ...
    @property
    def message(self) -> str: ...

class GPUOutOfMemoryError(GPUError, MemoryError): ...
class GPUValidationError(GPUError): ...
class GPUInternalError(GPUError): ...

class GPUPipelineError(Exception):
    @property
    def reason(self) -> str: ...

# Beside the properties, wgpu-native fills in the items adapter_type ("CPU", "DiscreteGPU", ...), backend_type
# ("Vulkan", ...), vendor_id and device_id.
class GPUAdapterInfo(dict[str, str | int]):
    @property
    def vendor(self) -> str: ...
    @property
    def architecture(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def subgroup_min_size(self) -> int: ...
    @property
    def subgroup_max_size(self) -> int: ...

class GPU:
    def request_adapter_sync(
        self,
        *,
        feature_level: str = "core",
        power_preference: _PowerPreference | None = None,
        force_fallback_adapter: bool = False,
        canvas: object = None,
    ) -> GPUAdapter: ...
    def enumerate_adapters_sync(self) -> list[GPUAdapter]: ...

gpu: GPU

class GPUAdapter:
    @property
    def features(self) -> set[str]: ...
    # Keys are written with dashes: "max-buffer-size".
    @property
    def limits(self) -> dict[str, int]: ...
    @property
    def info(self) -> GPUAdapterInfo: ...
    @property
    def summary(self) -> str: ...
    def request_device_sync(
        self,
        *,
        label: str = "",
        required_features: Sequence[str] = (),
        required_limits: dict[str, int | None] | None = None,
        default_queue: None = None,
    ) -> GPUDevice: ...

class GPUObjectBase:
    @property
    def label(self) -> str: ...

class GPUBindGroupLayout(GPUObjectBase): ...
class GPUBindGroup(GPUObjectBase): ...
class GPUPipelineLayout(GPUObjectBase): ...
class GPUShaderModule(GPUObjectBase): ...
class GPUCommandBuffer(GPUObjectBase): ...

class GPUComputePipeline(GPUObjectBase):
    def get_bind_group_layout(self, index: int) -> GPUBindGroupLayout: ...

class GPUQuerySet(GPUObjectBase):
    @property
    def count(self) -> int: ...
    def destroy(self) -> None: ...

# The package has no working sign of a lost device (lost_sync raises NotImplementedError): it logs the loss,
# and the next call raises a GPUValidationError that says "Parent device is lost".
class GPUDevice(GPUObjectBase):
    @property
    def features(self) -> set[str]: ...
    @property
    def limits(self) -> dict[str, int]: ...
    @property
    def queue(self) -> GPUQueue: ...
    @property
    def adapter(self) -> GPUAdapter: ...
    @property
    def adapter_info(self) -> GPUAdapterInfo: ...
    def destroy(self) -> None: ...
    def create_buffer(
        self, *, label: str = "", size: int, usage: _Flags, mapped_at_creation: bool = False
    ) -> GPUBuffer: ...
    def create_buffer_with_data(self, *, label: str = "", data: _Data, usage: _Flags) -> GPUBuffer: ...
    def create_bind_group_layout(
        self, *, label: str = "", entries: Sequence[_BindGroupLayoutEntry]
    ) -> GPUBindGroupLayout: ...
    def create_bind_group(
        self, *, label: str = "", layout: GPUBindGroupLayout, entries: Sequence[_BindGroupEntry]
    ) -> GPUBindGroup: ...
    def create_pipeline_layout(
        self, *, label: str = "", bind_group_layouts: Sequence[GPUBindGroupLayout]
    ) -> GPUPipelineLayout: ...
    def create_shader_module(self, *, label: str = "", code: str) -> GPUShaderModule: ...
    def create_compute_pipeline(
        self, *, label: str = "", layout: GPUPipelineLayout | Literal["auto"], compute: _ProgrammableStage
    ) -> GPUComputePipeline: ...
    def create_command_encoder(self, *, label: str = "") -> GPUCommandEncoder: ...
    def create_query_set(
        self, *, label: str = "", type: Literal["occlusion", "timestamp"], count: int
    ) -> GPUQuerySet: ...

class GPUBuffer(GPUObjectBase):
    @property
    def size(self) -> int: ...
    @property
    def usage(self) -> int: ...
    @property
    def map_state(self) -> _MapState: ...
    def map_sync(self, mode: _Flags, offset: int = 0, size: int | None = None) -> None: ...
    def unmap(self) -> None: ...
    # With copy=False the view is valid until unmap().
    def read_mapped(
        self, buffer_offset: int | None = None, size: int | None = None, *, copy: bool = True
    ) -> memoryview: ...
    def write_mapped(self, data: _Data, buffer_offset: int | None = None) -> None: ...
    def destroy(self) -> None: ...

class GPUCommandEncoder(GPUObjectBase):
    def begin_compute_pass(
        self, *, label: str = "", timestamp_writes: _ComputePassTimestampWrites | None = None
    ) -> GPUComputePassEncoder: ...
    def clear_buffer(self, buffer: GPUBuffer, offset: int = 0, size: int | None = None) -> None: ...
    def copy_buffer_to_buffer(
        self,
        source: GPUBuffer,
        source_offset: int,
        destination: GPUBuffer,
        destination_offset: int,
        size: int | None = None,
    ) -> None: ...
    def resolve_query_set(
        self,
        query_set: GPUQuerySet,
        first_query: int,
        query_count: int,
        destination: GPUBuffer,
        destination_offset: int,
    ) -> None: ...
    def finish(self, *, label: str = "") -> GPUCommandBuffer: ...

class GPUComputePassEncoder(GPUObjectBase):
    def set_pipeline(self, pipeline: GPUComputePipeline) -> None: ...
    def set_bind_group(
        self,
        index: int,
        bind_group: GPUBindGroup,
        dynamic_offsets_data: Sequence[int] = (),
        dynamic_offsets_data_start: int | None = None,
        dynamic_offsets_data_length: int | None = None,
    ) -> None: ...
    def dispatch_workgroups(
        self, workgroup_count_x: int, workgroup_count_y: int = 1, workgroup_count_z: int = 1
    ) -> None: ...
    def dispatch_workgroups_indirect(self, indirect_buffer: GPUBuffer, indirect_offset: int) -> None: ...
    def end(self) -> None: ...

class GPUQueue(GPUObjectBase):
    def submit(self, command_buffers: Sequence[GPUCommandBuffer]) -> None: ...
    def write_buffer(
        self,
        buffer: GPUBuffer,
        buffer_offset: int,
        data: _Data,
        data_offset: int = 0,
        size: int | None = None,
    ) -> None: ...
    def read_buffer(self, buffer: GPUBuffer, buffer_offset: int = 0, size: int | None = None) -> memoryview: ...
    @deprecated("raises TypeError in wgpu 0.32: read a few bytes back or map a buffer to wait")
    def on_submitted_work_done_sync(self) -> None: ...
