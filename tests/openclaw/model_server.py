"""A model on loopback that plays turns, streamed by any of three APIs, and records its requests."""

from tests.openclaw.model_wires import WIRES, Asked, Said
from tests.providers.servers.misbehaving import MisbehavingServer, Pause, Script

__all__ = ["Said", "ScriptedModel"]


class ScriptedModel(MisbehavingServer):
    """Each request gets the next turn, in the format of its path, and the last one is repeated.

    A turn is a text, a list of calls `(name, arguments)` with the arguments as JSON text, a `Said`, an HTTP
    status, or a function that makes one of these from the request.
    """

    def __init__(self, *turns, pause_s=0.01, prompt_tokens=11):
        super().__init__()
        self._pause, self._prompt_tokens = Pause(pause_s), prompt_tokens
        self.asked, self.keys, self.paths = [], [], []
        self._turns = turns
        self.on("*", self._play)

    def _play(self, request):
        if request.path == "/api/show" or not request.body:  # the server does not describe its models
            return Script.answer(status=404)
        turn = self._turns[min(len(self.asked), len(self._turns) - 1)]
        turn = turn(request.json) if callable(turn) else turn
        self.asked.append(request.json)
        self.paths.append(request.path)
        self.keys.append(request.headers.get("authorization"))
        if isinstance(turn, int):
            return Script.answer({"error": {"message": "not today", "type": "server_error"}}, status=turn)
        wire, model = WIRES[request.path], request.json["model"]
        asked = Asked(model=model, number=len(self.asked), prompt_tokens=self._prompt_tokens)
        pieces = [piece.encode() for piece in wire.pieces(_said(turn), asked)]
        steps = (step for piece in pieces for step in (piece, self._pause))
        return Script.stream(*steps, content_type=wire.kind)


def _said(turn):
    if isinstance(turn, Said):
        return turn
    return Said(text=turn) if isinstance(turn, str) else Said(calls=tuple(turn or ()), finish="tool_calls")
