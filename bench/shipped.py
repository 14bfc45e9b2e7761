"""The shipped scenarios that patterns name."""

import fnmatch


def shipped(checkout, patterns):
    """The scenario files of a checkout, relative to it, whose name or folder/name fits a pattern. All without patterns."""
    files = sorted(file.relative_to(checkout) for file in (checkout / "scenarios").glob("*/*.json"))
    return [file for file in files if not patterns or any(
        fnmatch.fnmatch(text, pattern) for pattern in patterns for text in (file.stem, f"{file.parent.name}/{file.stem}"))]
