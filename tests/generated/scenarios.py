"""Draws random scenarios from the program's JSON schema and its list of names.

A scenario is drawn field by field. The schema knows no rule that joins two fields, so most drawn scenarios are
bad input. `repaired` then asks `validate`, and deletes or draws again what the errors name. It never changes a
scenario that `validate` accepts.
"""

import copy
import json
import random
import re
import struct

# Sizes that would make a run long. Every other whole number is at most SMALL above its least value.
SIZES = {
    "train_samples": [16, 24, 40], "test_samples": [10, 17, 30], "points": [32, 64], "batch_size": [1, 4, 7],
    "steps": [20], "epochs": [1, 2], "record_every": [1, 5, 20, 40], "vocabulary": [6, 12], "size": [4, 6], "bits": [2, 8],
    "rows": [2, 12, 30], "rounds": [1, 20], "evaluations": [5, 30], "starts": [1, 4], "memory": [1, 5, 20],
    "every": [1, 7], "warmup_steps": [0, 5, 30], "warm_up": [0, 5], "shuffles": [1, 3], "root": [0, 1, 1000],
    "count": [1, 2, 3],
}
# One scenario in fifty has a large test set, so that its arrays have nearly all of its memory.
LARGE_TEST_SET = 40000
SMALL = 5
NUMBERS = [0, 0.01, 0.1, 0.3, 0.5, 1, 1.5, 2, 5]
EXTREMES = [1e-308, 1e-12, 1e6, 1e30, 1e308, -1e308, -1, 0.999999]
# Optional fields whose defaults are larger than this are always given.
LARGEST_DEFAULT = 8
# How often an optional field is given.
GIVEN = {"": 0.2, "train_samples": 0.8, "batch_size": 0.8, "test_samples": 1, "steps": 0.95, "lr": 0.85,
         "metrics": 0.8, "figures": 0.8, "points": 0.9, "save": 0.5, "seeds": 1, "count": 1, "phases": 0.2, "evaluations": 0.3,
         "arms": 0.3, "sweep": 0.6, "claims": 0.4, "experts": 0.95, "expert": 0.95, "router": 0.95, "gating": 0.8,
         "loss": 0.8, "train": 0.85, "eval": 0.6, "arm": 0.9, "metric": 0.9, "record_every": 0.7, "contamination": 0.15}
# Fields that would change what the program reads or how long it takes, or that no run uses.
LEFT_OUT = {"$schema", "version", "extends", "tune", "profiles", "crossing"}

TEXTS = {
    "name": ["a", "b", "first"], "title": ["a title", "<b>x</b> & \u202e", "&#x1; ]]> \ufffe &#x41 &# \u2028"], "score": [
        "dot(x, w)", "dot(x, w) / (norm(w) * norm(x))", "log(dot(x, w))", "-norm(x - w)^2", "dot(w, a * x) + b"],
    "shape": ["d", "e"], "moe_layers": ["all", "alternate"], "x": ["step"], "series": ["arm"],
    "power_law": ["{x}"], "laws": ["power"],
}
FORMULA_PARAMETERS = [{"w": "d"}, {"w": "d", "b": 0}, {"w": "d", "a": "d", "b": 0.5},
                      {"w": {"shape": "d", "value": 0.5}}]


def write_files(folder):
    """Writes the files that generated scenarios read: arrays and texts."""
    draw = random.Random("files")

    def write_array(name, kind, shape, values):
        head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
        head += " " * (63 - (len(head) + 10) % 64) + "\n"
        data = struct.pack(f"<{len(values)}{'d' if kind == '<f8' else 'q'}", *values)
        (folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)

    for name, rows in (("", 60), ("test_", 30)):
        write_array(f"{name}inputs.npy", "<f8", (rows, 3), [draw.gauss(0, 1) for _ in range(3 * rows)])
        write_array(f"{name}targets.npy", "<f8", (rows, 2), [draw.gauss(0, 1) for _ in range(2 * rows)])
        write_array(f"{name}labels.npy", "<i8", (rows,), [draw.randrange(3) for _ in range(rows)])
    for name in ("first", "second"):
        words = ["router", "expert", "gate", "load", "über", "seed"]
        (folder / f"{name}.txt").write_text(" ".join(draw.choice(words) for _ in range(400)) + "\n", encoding="utf-8")


def parts_of(value, path=()):
    """The paths of all parts of a JSON value, the outer ones first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield path + (key,)
        yield from parts_of(part, path + (key,))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def has(value, path):
    try:
        at(value, path)
        return True
    except (KeyError, IndexError, TypeError):
        return False


def put(value, path, part):
    at(value, path[:-1])[path[-1]] = part


def without(value, path):
    """A copy that lacks this part."""
    value = copy.deepcopy(value)
    del at(value, path[:-1])[path[-1]]
    return value


def path_in(document, text):
    """The dotted path of an error as keys. Keys of the document, such as names of arms, may have dots."""
    path, node, words = (), document, re.sub(r"\[(\d+)\]", r".\1", text).split(".")
    while words:
        for length in range(len(words), 0, -1):
            key = ".".join(words[:length])
            if isinstance(node, dict) and key in node:
                break
            if isinstance(node, list) and key.isdigit() and int(key) < len(node):
                key = int(key)
                break
        else:
            # A bare kind stands where the error names a field of its object.
            return path if isinstance(node, str) else path + (words[0],)
        path, node, words = path + (key,), node[key], words[length:]
    return path


def is_large(field):
    """Whether the field's default would make a run long."""
    default = field.get("default")
    if isinstance(default, list):
        return field.get("items", {}).get("type") == "integer" and bool(default)
    return field.get("type") == "integer" and (default or 0) > LARGEST_DEFAULT


class Language:
    """Draws scenarios from the documents that `moelab schema` and `moelab list --json` print."""

    def __init__(self, schema, names):
        self.schema = schema["else"]
        self.document = {}  # what names in claims and figures refer to
        self.metrics = {group["name"]: [metric["name"] for metric in group["metrics"]]
                        for group in names["metrics"]["kinds"]}
        # Kinds of an axis: the figure of what was covered.
        self.kinds = {axis: [kind["name"] for kind in table["kinds"]] for axis, table in names.items()}

    def scenario(self, draw, around=None):
        """A random scenario. Its claims and figures speak of `around`, or else of itself."""
        self.draw = draw
        self.document = around or {"metrics": ["task"]}
        document = self.object_of(self.schema, "", skip=("phases", "objective", "arms", "sweep", "evaluations", "claims", "figures"))
        self.document = around or document
        if document["data"].get("measure", {}).get("kind") == "given":
            self.fill_measure(document["data"])
        if draw.random() < 0.9:
            self.join(document)
        document["name"] = "generated"
        document.setdefault("seeds", {})["count"] = draw.choice(SIZES["count"])
        if draw.random() < 0.02:
            document["data"]["test_samples"] = LARGE_TEST_SET
        properties = self.schema["properties"]
        if self.given("arms"):
            document["arms"] = {"base": {}, "other": self.overrides(draw.choice(["model.", "train.", "loss."]))}
        if self.given("sweep"):
            document["sweep"] = {}
            for _ in range(draw.choice([1, 1, 2])):
                for name, value in list(self.overrides(draw.choice(["data.", "model.", "train.", "loss."])).items())[:1]:
                    document["sweep"][name] = [value, *self.overrides(name).values()]
            if not document["sweep"]:
                del document["sweep"]
        if self.given("evaluations"):
            document["evaluations"] = {"shifted": self.overrides("data.")}
        if "metrics" in document and draw.random() < 0.9:
            document["metrics"] = ["task"] + [group for group in document["metrics"] if "task" not in str(group)]
        for part in ("objective", "claims", "figures"):
            if self.given(part):
                document[part] = self.value(properties[part], part)
                for number, entry in enumerate(document[part] if part != "objective" else []):
                    entry["id"] = f"{part}_{number}"
        if "figures" in document and draw.random() < 0.9:
            document["save"] = ["weights", "routing", "routing_steps"]
        if self.given("phases"):
            document["phases"] = self.value(properties["phases"], "phases")
        for number, phase in enumerate(document.get("phases", [])):
            phase["name"] = f"phase_{number}"
        return document

    def section(self, draw, name, around):
        """A scenario with one section drawn again; data keep their generator."""
        if name not in ("data", "model", "loss", "train"):
            return self.scenario(draw, around)
        self.draw = draw
        for _ in range(50):
            drawn = self.value(self.schema["properties"][name], name)
            if name != "data" or drawn["generator"] == around["data"]["generator"]:
                break
        return {name: drawn}

    def overrides(self, prefix):
        """One or two fields below the prefix with values, as an arm has them. A whole path gives this field."""
        section = prefix.partition(".")[0]
        for _ in range(200):
            donor = {section: self.value(self.schema["properties"][section], section)}
            if section == "data" and donor["data"]["generator"] != self.document["data"]["generator"]:
                continue
            paths = {".".join(path): path for path in parts_of(donor)
                     if len(path) > 1 and all(isinstance(key, str) for key in path)}
            fitting = [name for name in paths if name == prefix or (prefix.endswith(".") and name.startswith(prefix))]
            if fitting:
                chosen = self.draw.sample(fitting, min(len(fitting), self.draw.choice([1, 1, 2])))
                return {name: at(donor, paths[name]) for name in chosen}
        return {}

    def join(self, document):
        """Deletes and adds what the commonest rules between fields name, so that `validate` has fewer to name."""
        draw, data, model, train = self.draw, document["data"], document["model"], document["train"]
        loss = document.setdefault("loss", {})
        language = data["generator"] in ("synthetic_language", "text")
        model["kind"] = "transformer" if language else draw.choice(["moe"] * 8 + ["dense"])
        if model["kind"] == "transformer":
            model["width"], model["heads"] = draw.choice([(4, 2), (4, 1), (6, 3), (2, 1)])
            dropped = ["attention", "input_width", "match", "depth", "reads", "mixer", "shared_experts"]
        else:
            dropped = ["mixer", "heads", "feed_forward", "moe_layers", "positions", "norm", "tied_embedding", "causal",
                       "dropout"]
            dropped += ["width", "depth", "match"] if model["kind"] == "moe" else [
                "experts", "expert", "router", "gating", "attention", "layers", "shared_experts", "null_experts",
                "input_width", "reads"]
            if model["kind"] == "dense":
                model["width"], model["depth"] = draw.choice([2, 5]), draw.choice([1, 2])
                dropped = [field for field in dropped if field not in ("width", "depth")]
        self.drop(model, dropped)
        target = data.get("target", "")
        target = target["kind"] if isinstance(target, dict) else target
        classes = target in ("class", "linear_class")
        loss["task"] = draw.choice(["cross_entropy", "masked_tokens"] if language else
                                   ["cross_entropy", "mse"] if classes else ["mse"])
        if loss["task"] != "masked_tokens":
            loss.pop("mask_share", None)
        elif model["kind"] == "transformer":
            model["causal"] = False
        optimizer = train.get("optimizer", "sgd")
        optimizer = optimizer["kind"] if isinstance(optimizer, dict) else optimizer
        population = train.get("gradient") == "population" and not language and optimizer != "lbfgs"
        if train.get("gradient") == "population" and not population:
            del train["gradient"]
        gating = model.get("gating")
        if isinstance(gating, dict):
            self.drop(gating, ["balance_rate", "jitter"] if optimizer == "lbfgs" else [])
            self.drop(gating, [] if "balance_rate" in gating else ["balance_rule"])
        router = model.get("router")
        start = train.get("start", "cold")
        if optimizer == "lbfgs" and isinstance(router, dict) and start not in ("cold", {"kind": "cold"}):
            router.pop("trainable", None)
        if data["generator"] == "task_pool" and "noise_norm" in data:
            data.pop("noise_std", None)
        self.drop(train, ["lr", "batch_size", "weight_decay", "schedule", "clip_norm", "epochs"] if optimizer == "lbfgs"
                  else ["start"])
        if optimizer != "lbfgs":
            train.setdefault("lr", draw.choice([0.001, 0.01, 0.1, 1]))
        self.drop(train, ["batch_size", "epochs"] if population else ["points", "rule", "redraw"])
        if population:
            train.setdefault("points", draw.choice(SIZES["points"]))
            data.pop("train_samples", None)
        else:
            data.setdefault("train_samples", draw.choice(SIZES["train_samples"]))
        if "epochs" in train and "steps" in train:
            del train["epochs"]
        elif "epochs" not in train:
            train["steps"] = 20

    @staticmethod
    def drop(section, fields):
        for field in fields:
            section.pop(field, None)

    def fill_measure(self, data):
        """Gives a written mixing measure as many components everywhere, and the width of the data."""
        components, measure = self.draw.choice([1, 2, 3]), data["measure"]
        for field, length in (("gate", components), ("bias", components), ("slope", components), ("intercept", components),
                              ("group_gate", None), ("group_bias", None), ("shared_slope", data.get("shared_experts")), ("shared_intercept", data.get("shared_experts"))):
            vector = field in ("bias", "intercept", "shared_intercept")
            if length:
                measure[field] = [self.draw.gauss(0, 1) if vector else [self.draw.gauss(0, 1) for _ in range(data["dim"])]
                                  for _ in range(length)]
            else:
                measure.pop(field, None)
        if isinstance(data.get("law"), dict) and "variance" in data["law"]:
            data["law"]["variance"] = [0.5] * components

    def given(self, name):
        return self.draw.random() < GIVEN.get(name, GIVEN[""])

    def value(self, schema, name):
        draw = self.draw
        if name == "parameters":
            return copy.deepcopy(draw.choice(FORMULA_PARAMETERS))
        for key in ("oneOf", "anyOf"):
            if key in schema:
                return self.choice_of(schema[key], name)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return draw.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            return self.object_of(schema, name)
        if kind == "array":
            least = schema.get("minItems", 0)
            most = 14 if name == "metrics" else 3
            elements = [self.value(schema.get("items", {}), name) for _ in range(draw.randint(least, max(least, most)))]
            kinds = [element.get("kind") if isinstance(element, dict) else element for element in elements]
            unique = name in ("metrics", "save", "shared", "learns")
            return [element for number, element in enumerate(elements) if not unique or kinds[number] not in kinds[:number]]
        if kind == "boolean":
            return draw.random() < 0.5
        if kind == "integer":
            least = int(schema.get("minimum", 0))
            sizes = [size for size in SIZES.get(name, range(least, least + SMALL + 1))
                     if least <= size <= schema.get("maximum", size)]
            return draw.choice(sizes or [least])
        if kind == "number":
            values = NUMBERS if draw.random() < 0.98 else EXTREMES
            fitting = [value for value in values
                       if schema.get("minimum", value) <= value <= schema.get("maximum", value)
                       and value > schema.get("exclusiveMinimum", float("-inf"))]
            return draw.choice(fitting or [schema.get("maximum", 1)])
        if kind == "string":
            return self.text(name)
        return draw.choice([True, 1, 0.5, "end"])

    def choice_of(self, choices, name):
        """One of several schemas. A kind is as probable as another; its bare name is written as often as its object."""
        objects = [choice for choice in choices if choice.get("type") == "object"]
        bare = [kind for choice in choices for kind in choice.get("enum", [])]
        if not objects or len(objects) + (1 if bare else 0) != len(choices):
            return self.value(self.draw.choice(choices), name)
        if name == "figures" and self.draw.random() < 0.95:
            wanted = {"heat_map": "sweep", "rate_panels": "sweep", "claim": "claims", "crossing": "crossing"}
            objects = [choice for choice in objects
                       if wanted.get(choice["properties"]["kind"]["const"], "data") in ("data", *self.document)]
        drawn = self.draw.choice(objects)
        kinds = [part["const"] for part in drawn["properties"].values() if part.get("const") in bare]
        large = any(is_large(part) for part in drawn["properties"].values())
        if kinds and not large and name != "data" and self.draw.random() < 0.5:
            return kinds[0]
        return self.object_of(drawn, name)

    def object_of(self, schema, name, skip=()):
        drawn = {}
        for field, part in schema.get("properties", {}).items():
            if field in LEFT_OUT or field in skip:
                continue
            auxiliary = name == "loss" and part.get("default") == 0.0 and self.draw.random() < 0.5
            if field in schema.get("required", ()) or is_large(part) or (self.given(field) and not auxiliary):
                drawn[field] = self.value(part, field)
        if name in ("data", "loss", "train") and not schema.get("properties"):
            # A phase's changes of a section.
            drawn = {key.partition(".")[2]: value for key, value in self.overrides(name + ".").items() if key.count(".") == 1}
        if name == "labels":
            drawn = {"base": self.draw.choice(TEXTS["title"])}
        if name == "where" and self.document.get("sweep"):
            drawn = {path: values[0] for path, values in self.document["sweep"].items()
                     if isinstance(values, list) and values}
        return drawn

    def text(self, name):
        draw, document = self.draw, self.document
        arms, paths = list(document.get("arms", {"base": {}})), list(document.get("sweep", {}))
        if name in ("y", "metric", "value", "relative_to", "objective", "distance_from"):
            groups = [group["kind"] if isinstance(group, dict) else group for group in document.get("metrics", ["task"])]
            metrics = [metric for group in groups or ["task"] for metric in self.metrics[group]]
            evaluations = [f"{evaluation}." for evaluation in document.get("evaluations", {})]
            return draw.choice([""] * 3 + evaluations) + draw.choice(metrics)
        if name in ("arm", "arms"):
            return draw.choice(arms)
        if name in ("x", "series", "along", "columns"):
            return draw.choice(TEXTS.get(name, []) + paths or ["arm"])
        if name == "rows":
            return "base"
        if name == "claim":
            return draw.choice([claim["id"] for claim in document.get("claims", []) if "id" in claim] or ["claims_0"])
        if name == "paths":
            return f"../{draw.choice(['first', 'second'])}.txt"
        if name in ("inputs", "targets", "labels", "test_inputs", "test_targets", "test_labels"):
            return f"../{name}.npy"
        return draw.choice(TEXTS.get(name, ["text"]))


def repaired(language, draw, document, errors_of, tries=30):
    """Changes what the errors name until there are none. Returns the scenario, or None after too many tries.

    `errors_of` gives the errors of a scenario as `validate --json` prints them.
    """
    document = copy.deepcopy(document)
    for _ in range(tries):
        errors = errors_of(document)
        if not errors:
            keep_small(document)
            return document
        for error in errors:
            mended(language, draw, document, error)
    return None


def keep_small(document):
    """Keeps apart what takes minutes together, and what `plan` says so of.

    The repair may drop the points of population gradients. For minimum_norm, the default points take minutes a step.
    A Bayes prediction reads the mean of every leaf of a hierarchy, for every test row.
    """
    train = document.get("train", {})
    if train.get("gradient") == "population" and "minimum_norm" in json.dumps(document):
        train.setdefault("points", SIZES["points"][0])
    data = document.get("data", {})
    if data.get("test_samples", 0) >= LARGE_TEST_SET and isinstance(data.get("hierarchy"), dict):
        data["hierarchy"]["branching"] = 2


def mended(language, draw, document, error):
    """Deletes or draws again what one error names."""
    message = error["message"]
    named = re.findall(r"[a-z_]+(?:\.[a-z_0-9]+)+", message)
    path = path_in(document, draw.choice(named) if named and draw.random() < 0.25 else error["path"])
    if path[:1] == ("phases",) and not has(document, path) and draw.random() < 0.5:
        path = path[2:]  # The phase has the field from the scenario.
    entries = ("phases", "evaluations", "arms", "sweep", "claims", "figures", "metrics")
    if len(path) > 2 and path[0] in entries and draw.random() < 0.4:
        path = path[:2]
    if not path or path[-1] in ("generator", "test_samples") or path == ("name",) or not has(document, path[:-1]):
        return
    excess = message.startswith(("unknown key", "given, but"))
    required = path[0] in ("data", "model", "train") and len(path) == 1
    if has(document, path) and not required and (excess or draw.random() < 0.4):
        at(document, path[:-1]).pop(path[-1])
        return
    for _ in range(0 if excess else 12):
        donor = language.section(draw, path[0], document)
        if has(donor, path):
            # Where the document has a number and the donor a list or an object, the whole value is taken.
            while not isinstance(at(document, path[:-1]), (dict, list)):
                path = path[:-1]
            put(document, path, at(donor, path))
            return
    if has(document, path) and len(path) > 1:
        at(document, path[:-1]).pop(path[-1])
    elif len(path) > 2:
        at(document, path[:-2]).pop(path[-2])
