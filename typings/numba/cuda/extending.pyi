from ..extending import intrinsic as intrinsic
