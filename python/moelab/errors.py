"""What moelab raises."""


class UserError(ValueError):
    """Bad input. The error names the place, the given value and what is allowed.

    ``path`` is a JSON path of a scenario ("model.router.kind"). It can also be a file with its line or an argument.
    ``message`` has the rest.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(path, message)
        self.path = path
        self.message = message

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message
