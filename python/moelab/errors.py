"""What moelab raises."""


class UserError(ValueError):
    """Bad input: where it stands, what was given, what is allowed.

    ``path`` is a JSON path of a scenario ("model.router.kind"), a file with its line, or the name of an
    argument; ``message`` says the rest.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(path, message)
        self.path = path
        self.message = message

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message
