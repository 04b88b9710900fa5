"""Answers held to a form: random schemas, on the shipped model, against the package jsonschema."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import heddle

jsonschema = pytest.importorskip("jsonschema")

MODEL = Path(__file__).parents[2] / "models" / "storyteller"
SCHEMAS, SEEDS = 30, 2


@pytest.fixture(scope="module")
def model():
    return heddle.load(str(MODEL), max_sequences=SCHEMAS * SEEDS)


def leaf(random):
    low = random.randint(-20, 20)
    return random.choice(
        [
            {"type": "boolean"},
            {"type": "null"},
            {"type": "integer", "minimum": low, "maximum": low + random.randint(0, 300)},
            {"type": "number", "exclusiveMinimum": low / 4, "maximum": low / 4 + 2.5},
            {"type": "string", "minLength": random.randint(0, 3), "maxLength": random.randint(3, 12)},
            {
                "type": "string",
                "pattern": random.choice(["^[A-Z][a-z]{1,6}$", "^\\d{3}-\\d{4}$", "^(fox|owl|a b)$"]),
            },
            {"type": "string", "format": random.choice(["date", "time", "uuid", "ipv4"])},
            {"enum": random.sample(["red", "gr\u00fcn", 'a"b', 1, 2.5, None, True, [1], {"k": "v"}], 3)},
        ]
    )


def schema(random, depth):
    if depth == 0 or random.random() < 0.2:
        return leaf(random)
    kind = random.randrange(4)
    if kind == 0:
        least = random.randint(0, 2)
        return {"type": "array", "items": schema(random, depth - 1), "minItems": least, "maxItems": least + 1}
    if kind == 1:
        return {"anyOf": [schema(random, depth - 1), leaf(random)]}
    names = random.sample(["name", "age", "a b", "caf\u00e9", 'x"y'], random.randint(1, 3))
    return {
        "type": "object",
        "properties": {name: schema(random, depth - 1) for name in names},
        "required": names[: random.randint(1, len(names))],
        "additionalProperties": random.choice([False, False, {"type": "boolean"}]),
    }


def asked(schema):
    return {"type": "json_schema", "json_schema": {"name": "made", "schema": schema}}


def answer(model, schema, seed, most=160):
    return model.generate_tokens(
        "A value: ", response_format=asked(schema), temperature=1.3, seed=seed, max_tokens=most
    )


def test_answers_are_valid(model):
    source = random.Random(7)
    jobs = [(made, seed) for made in (schema(source, 3) for _ in range(SCHEMAS)) for seed in range(SEEDS)]
    with ThreadPoolExecutor(len(jobs)) as pool:
        answers = list(pool.map(lambda job: answer(model, *job), jobs))
    ended = 0
    for (made, _), tokens in zip(jobs, answers, strict=True):
        if tokens[-1].finish_reason == "eos":
            value = json.loads("".join(token.text for token in tokens))
            jsonschema.validate(value, made, format_checker=jsonschema.FormatChecker())
            ended += 1
    assert ended > len(jobs) // 2


def test_a_cut_answer_begins_a_value(model):
    made = {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 3, "maxItems": 3}
    whole = "".join(token.text for token in answer(model, made, 3))
    assert len(json.loads(whole)) == 3
    for most in (1, 2, 5):
        cut = answer(model, made, 3, most)
        assert cut[-1].finish_reason == "length"
        assert whole.startswith("".join(token.text for token in cut))


def test_objects(model):
    text = model.generate(
        "A value: ", response_format={"type": "json_object"}, max_tokens=200, temperature=1, seed=1
    )
    assert text.lstrip().startswith("{")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"type": "xml"}, ["response_format.type", "json_schema"]),
        ({"type": "json_schema"}, ["schema"]),
        (
            asked({"type": "integer", "multipleOf": 3}),
            ["json_schema.schema.multipleOf is 3", "keyword multipleOf"],
        ),
        (asked({"type": "object", "properties": {"x": {"not": {}}}}), ["properties.x.not", "keyword not"]),
    ],
)
def test_what_is_not_done_is_refused(model, form, words):
    with pytest.raises(heddle.Error) as refused:
        model.generate("a", response_format=form)
    for word in words:
        assert word in str(refused.value)
