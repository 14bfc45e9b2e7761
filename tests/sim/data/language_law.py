"""Reference values for language_law_test.cpp from NumPy; writes language_law.json beside itself.

    python3 tests/sim/data/language_law.py

Languages of several domains: what predictors of the next token that know the law lose, by adding up the probability
of every path of domains and, for the bigram and the unigram, of every sequence. Nothing is filtered. Of facts a law has
the rate and the values; what comes next is worked out from what went before, place by place.
"""

import itertools
import json
import pathlib

import numpy as np

generator = np.random.default_rng(20251122)


def drawn_law(domains, vocabulary, order, switch_rate):
    shape = (domains, vocabulary**order, vocabulary)
    return {
        "order": order,
        "switch_rate": switch_rate,
        "start": generator.dirichlet(np.ones(vocabulary), domains),
        "transitions": generator.dirichlet(0.3 * np.ones(vocabulary), shape[:2]),
    }


def with_facts(law, pairs, rate):
    """The chains and starts on the tokens but the last `pairs`, which are keys."""
    domains, vocabulary = law["start"].shape
    for rows in [law["start"], law["transitions"]]:
        rows[..., vocabulary - pairs :] = 0
        rows /= rows.sum(-1, keepdims=True)
    values = generator.integers(vocabulary - pairs, size=(domains, pairs))
    return {**law, "facts": {"rate": rate, "values": values.tolist()}}


def next_law(law, domain, before):
    if "facts" not in law:
        return chain_law(law, domain, before)
    values, rate = law["facts"]["values"][domain], law["facts"]["rate"]
    ordinary = law["start"].shape[1] - len(values)
    if before and before[-1] >= ordinary:
        return np.eye(law["start"].shape[1])[values[before[-1] - ordinary]]
    keys = np.arange(law["start"].shape[1]) >= ordinary
    return (1 - rate) * chain_law(law, domain, before) + rate * keys / len(values)


def chain_law(law, domain, before):
    if len(before) < law["order"]:
        return law["start"][domain]
    context = 0
    for token in before[len(before) - law["order"] :]:
        context = context * law["start"].shape[1] + token
    return law["transitions"][domain, context]


def path_probability(law, path):
    domains = law["start"].shape[0]
    probability = 1 / domains
    for last, here in zip(path, path[1:]):
        if domains > 1:
            probability *= 1 - law["switch_rate"] if last == here else law["switch_rate"] / (domains - 1)
    return probability


def probability_of(law, tokens, path):
    probability = path_probability(law, path)
    for t, domain in enumerate(path):
        probability *= next_law(law, domain, tokens[:t])[tokens[t]]
    return probability


def total(law, tokens):
    domains = law["start"].shape[0]
    return sum(probability_of(law, tokens, path) for path in itertools.product(range(domains), repeat=len(tokens)))


def losses(law, samples, labels):
    domains, vocabulary = law["start"].shape
    tokens = samples.shape[1] - 1
    pairs = np.zeros((vocabulary, vocabulary))
    for sequence in itertools.product(range(vocabulary), repeat=tokens + 1):
        probability = total(law, sequence)
        for last, following in zip(sequence, sequence[1:]):
            pairs[last, following] += probability / tokens
    sums = dict.fromkeys(["bayes", "oracle_domain", "bigram", "unigram"], 0.0)
    for sequence, domain in zip(samples.tolist(), labels.tolist()):
        for t in range(tokens):
            following = sequence[t + 1]
            sums["bayes"] -= np.log(total(law, sequence[: t + 2]) / total(law, sequence[: t + 1]))
            moves = [
                path_probability(law, (domain[t], c)) * domains * next_law(law, c, sequence[: t + 1])[following]
                for c in range(domains)
            ]
            sums["oracle_domain"] -= np.log(sum(moves))
            sums["bigram"] -= np.log(pairs[sequence[t], following] / pairs[sequence[t]].sum())
            sums["unigram"] -= np.log(pairs[:, following].sum())
    return {name: value / (len(samples) * tokens) for name, value in sums.items()}


def drawn_sample(law, tokens):
    """A sequence of the law and its domains: with facts not every one is possible."""
    domains, vocabulary = law["start"].shape
    domain, ids, path = generator.integers(domains), [], []
    for t in range(tokens + 1):
        if t > 0 and generator.random() < law["switch_rate"]:
            domain = (domain + generator.integers(1, domains)) % domains
        ids.append(int(generator.choice(vocabulary, p=next_law(law, domain, ids))))
        path.append(int(domain))
    return ids, path[:-1]


def fact_case(domains, vocabulary, order, switch_rate, tokens, pairs, rate, samples=6):
    law = with_facts(drawn_law(domains, vocabulary, order, switch_rate), pairs, rate)
    drawn = [drawn_sample(law, tokens) for _ in range(samples)]
    return item(law, np.array([ids for ids, _ in drawn]), np.array([path for _, path in drawn]))


def case(domains, vocabulary, order, switch_rate, tokens, samples=6):
    law = drawn_law(domains, vocabulary, order, switch_rate)
    # Any sequences will do, likely or not.
    ids = generator.integers(vocabulary, size=(samples, tokens + 1))
    labels = generator.integers(domains, size=(samples, tokens))
    return item(law, ids, labels)


def item(law, ids, labels):
    return {
        **{key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in law.items()},
        "ids": ids.tolist(),
        "labels": labels.tolist(),
        "losses": losses(law, ids, labels),
    }


cases = [case(2, 3, 1, 0.0, 4), case(3, 3, 1, 0.2, 3), case(2, 2, 2, 0.3, 4), case(1, 4, 1, 0.0, 3), case(2, 3, 2, 0.0, 1)]
cases += [
    fact_case(2, 4, 1, 0.0, 4, 1, 0.4),
    fact_case(2, 5, 1, 0.3, 4, 2, 0.5),
    fact_case(2, 3, 2, 0.2, 4, 1, 0.5),
    fact_case(1, 4, 1, 0.0, 3, 2, 0.3),
]
target = pathlib.Path(__file__).with_suffix(".json")
target.write_text(json.dumps({"cases": cases}) + "\n")
