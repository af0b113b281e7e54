"""The target "wgsl": Vulkan, Metal and DX12 by wgpu, or a browser's WebGPU."""
