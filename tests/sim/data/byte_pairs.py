"""Reference values for byte_pairs_test.cpp in plain Python; writes byte_pairs.json beside itself.

    python3 tests/sim/data/byte_pairs.py

Byte-pair encoding by its definition: before every merge all pairs of all texts are counted anew, and each text is
written anew from its left to its right.
"""

import json
import pathlib
import random

random.seed(20261122)


def merged(text, pair, token):
    result, place = [], 0
    while place < len(text):
        if tuple(text[place : place + 2]) == pair:
            result.append(token)
            place += 2
        else:
            result.append(text[place])
            place += 1
    return result


def learn(texts, vocabulary):
    """Merges, and the texts after them; fewer merges where no pair stands at two places."""
    merges = []
    while 256 + len(merges) < vocabulary:
        counts = {}
        for text in texts:
            for pair in zip(text, text[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < 2:
            break
        texts = [merged(text, best, 256 + len(merges)) for text in texts]
        merges.append(best)
    return merges, texts


def words(count):
    syllables = ["ba", "na", "aa", "to", "kö", "ni", "🙂", "aaa", "x"]
    made = ["".join(random.choices(syllables, k=random.randint(1, 3))) for _ in range(40)]
    return " ".join(random.choice(made) for _ in range(count))


cases = [
    ([words(500), words(250), "", "a"], [words(100), "zzz never seen: Ω", ""], 420),
    (["a" * 37 + "b" + "a" * 8, "a" * 5], ["a" * 11, "aba"], 300),
    (["abcabcabd" * 3], ["abcabd"], 300),
    (["".join(random.choices("ab", k=900))], ["".join(random.choices("abc", k=200))], 330),
]
document = []
for train, test, vocabulary in cases:
    merges, encoded = learn([list(text.encode()) for text in train], vocabulary)
    others = [list(text.encode()) for text in test]
    for place, pair in enumerate(merges):
        others = [merged(text, pair, 256 + place) for text in others]
    document.append(
        {
            "train": train,
            "test": test,
            "vocabulary": vocabulary,
            "merges": merges,
            "encoded_train": encoded,
            "encoded_test": others,
        }
    )
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(document, ensure_ascii=False) + "\n")
