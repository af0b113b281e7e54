"""WebGPU through wgpu: Vulkan, Metal, DX12."""
