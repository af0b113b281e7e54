from ..types import Type

class Signature:
    @property
    def return_type(self) -> Type: ...
    @property
    def args(self) -> tuple[Type, ...]: ...
