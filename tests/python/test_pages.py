"""The written pages, against the program: verbs and options of their commands exist, and their JSON can be read."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page
    for page in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    if "results" not in page.parts and page.name not in ("commands.md", "bad_input.md", "scenario.md", "theorems.md")
]


@cache
def options_of(verb: str) -> set[str] | None:
    """The options of a verb, from its help; None where there is no such verb."""
    done = subprocess.run([os.environ["MOELAB_PROGRAM"], verb, "--help"], capture_output=True, text=True)
    return set(re.findall(r"--[a-z][\w-]*", done.stdout)) if done.returncode == 0 else None


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.M | re.S)


def commands(page: Path) -> list[list[str]]:
    """The words of every command of the program: lines of code blocks, and code that begins with `moelab`."""
    text = page.read_text()
    lines = [line for block in blocks(page, "(?:sh)?") for line in re.split(r"\n|&&", block.replace("\\\n", " "))]
    lines += re.findall(r"`((?:build/)?moelab [a-z][^`]*)`", text)
    words = []
    for line in lines:
        found = re.match(r"\s*(?:build/)?moelab ([a-z].*)$", line.split(" # ")[0].rstrip(" &"))
        if found:
            words.append(shlex.split(found.group(1)))
    return words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_are_those_of_the_program(page):
    for verb, *words in commands(page):
        if verb in ("help", "version"):
            continue
        options = options_of(verb)
        assert options is not None, f"no verb {verb}"
        for word in words:
            if word.startswith("--"):
                assert word.split("=")[0] in options, f"{verb} has no {word}"
            path = word.split("@")[0]
            if path.startswith("scenarios/") and "*" not in path:
                assert (ROOT / path).exists(), f"no file {path}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_json_can_be_read(page):
    for block in blocks(page, "json"):
        for text in (block, "{" + block + "}"):
            try:
                json.loads(text)
                break
            except ValueError as error:
                wrong = error
        else:
            raise AssertionError(f"{wrong}: {block}")


def test_pages_have_commands():
    assert sum(len(commands(page)) for page in PAGES) > 40
