from cupy.cuda import Stream

class Graph:
    def launch(self, stream: Stream | None = None) -> None: ...
