
__version__: str
