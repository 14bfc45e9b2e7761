"""The shipped scenarios that patterns name."""

import fnmatch
import sys
from pathlib import Path


def shipped(checkout, patterns):
    """The scenario files of a checkout, relative to it, whose name or folder/name fits a pattern. All without patterns.
    Ends the program with an error if none fits."""
    files = sorted(file.relative_to(checkout) for file in (checkout / "scenarios").glob("*/*.json"))
    found = [file for file in files if not patterns or any(
        fnmatch.fnmatch(text, pattern) for pattern in patterns for text in (file.stem, f"{file.parent.name}/{file.stem}"))]
    if not found:
        sys.exit(f"bench/{Path(sys.argv[0]).name}: no scenario is named {' or '.join(patterns)}; "
                 "`ls scenarios/*` shows the names")
    return found
