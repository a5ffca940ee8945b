"""What a call may answer instead of a result; `kind` says whose fault it is."""


class Failure(Exception):
    """Raised to answer a call with an error.

    kind: infra (desktop or library broke), setup (the task could not be prepared), unsupported (a
    package or function is not there), evaluator (no score can be given), action (refused by the desktop).
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
