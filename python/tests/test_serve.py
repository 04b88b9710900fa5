"""`heddle serve` as the official clients use it, on loopback with the shipped model."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import torch

import heddle
from serving import server

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

MODEL = Path(__file__).parents[2] / "models" / "storyteller"
SUM = [{"role": "user", "content": "27 + 45"}]
STORY = [{"role": "user", "content": "a story about a clever fox"}]


@pytest.fixture(scope="module")
def url():
    with server(MODEL, "--log", "none") as (address, _):
        yield address


@pytest.fixture(scope="module")
def client(url):
    return openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def messages(url):
    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages


def read(url, path):
    with urllib.request.urlopen(url + path, timeout=60) as response:
        return response.read().decode()


POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 99}, "ok": {"type": "boolean"}},
    "required": ["x", "ok"],
    "additionalProperties": False,
}


def test_answers_of_a_form(client, url):
    form = {"type": "json_schema", "json_schema": {"name": "point", "schema": POINT, "strict": True}}
    asked = {"model": "storyteller", "messages": SUM, "response_format": form, "max_tokens": 250}
    answer = client.chat.completions.create(**asked)
    assert answer.choices[0].finish_reason == "stop"
    point = json.loads(answer.choices[0].message.content)
    assert list(point) == ["x", "ok"]
    assert 0 <= point["x"] <= 99
    pieces = [
        event.choices[0].delta.content or "" for event in client.chat.completions.create(**asked, stream=True)
    ]
    assert json.loads("".join(pieces)) == point
    format_ = {"type": "json_schema", "name": "point", "schema": POINT}
    response = client.responses.create(model="storyteller", input="27 + 45", text={"format": format_})
    assert set(json.loads(response.output_text)) == {"x", "ok"}
    form["json_schema"]["schema"] = {"type": "object", "properties": {"x": {"multipleOf": 2}}}
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**asked)
    assert refused.value.param == "response_format"
    assert "response_format.json_schema.schema.properties.x.multipleOf is 2" in str(refused.value)


def test_openai_client(client):
    assert [model.id for model in client.models.list()] == ["storyteller"]
    assert client.models.retrieve("storyteller").id == "storyteller"
    answer = client.chat.completions.create(model="storyteller", messages=SUM)
    assert answer.choices[0].message.content == " 72."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    two = client.completions.create(model="storyteller", prompt=["27 + 45 =", "9 + 2 ="], n=2, max_tokens=9)
    assert [choice.text for choice in two.choices] == [" 72.", " 72.", " 11.", " 11."]
    assert [choice.index for choice in two.choices] == [0, 1, 2, 3]


def test_stream_is_the_whole_answer(client):
    whole = client.chat.completions.create(model="storyteller", messages=STORY, max_tokens=60)
    text, usage = "", None
    for chunk in client.chat.completions.create(
        model="storyteller",
        messages=STORY,
        max_tokens=60,
        stream=True,
        stream_options={"include_usage": True},
    ):
        text += chunk.choices[0].delta.content or "" if chunk.choices else ""
        usage = chunk.usage or usage
    assert text == whole.choices[0].message.content
    assert (usage.prompt_tokens, usage.completion_tokens) == (whole.usage.prompt_tokens, 60)


def test_the_same_text_as_generate(client):
    """Among many neighbours, and as the engine alone makes it."""
    prompts = [f"{a} + {b} =" for a in range(20, 24) for b in (7, 19)] + [
        "Once upon a time",
        "Story: The clever fox",
    ]

    async def ask():
        async with openai.AsyncOpenAI(base_url=client.base_url, api_key="none") as many:
            return await asyncio.gather(
                *(many.completions.create(model="storyteller", prompt=p, max_tokens=40) for p in prompts)
            )

    with heddle.load(MODEL) as model:
        alone = [model.generate(prompt, max_tokens=40) for prompt in prompts]
    assert [answer.choices[0].text for answer in asyncio.run(ask())] == alone


def test_logprobs(client):
    answer = client.chat.completions.create(model="storyteller", messages=SUM, logprobs=True, top_logprobs=3)
    scored = answer.choices[0].logprobs.content
    assert "".join(token.token for token in scored) == " 72."
    assert all(len(token.top_logprobs) == 3 and token.logprob <= 0 for token in scored)
    # As lm-eval's local-completions asks: tokens in, the scores of all of them out.
    tokens = [0, 671, 262, 300]
    echoed = client.completions.create(
        model="storyteller", prompt=tokens, echo=True, logprobs=1, max_tokens=1, temperature=0
    ).choices[0]
    assert len(echoed.logprobs.tokens) == 5
    assert echoed.logprobs.token_logprobs[0] is None
    with heddle.load(MODEL) as model:
        scores = torch.log_softmax(torch.from_numpy(model.logits(tokens)).double(), -1)
    expected = [scores[i, token].item() for i, token in enumerate(tokens[1:])]
    assert echoed.logprobs.token_logprobs[1:4] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("model", "another", 404),
        ("temperature", -1, 400),
        ("temperature", "hot", 400),
        ("n", 1_000_000, 400),
        ("max_tokens", 100_000, 400),
        ("stop", [""], 400),
        ("stop_token_ids", [10**6], 400),
        ("logit_bias", {"1000000": 1}, 400),
        ("top_logprobs", 3, 400),
        ("response_format", {"type": "xml"}, 400),
        ("tool_choice", "required", 400),
        ("tools", [{"type": "function", "function": {"name": "f"}}], 400),
        ("messages", [], 400),
        ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], 400),
        ("messages", [{"role": "user", "content": "2000 / 3"}], 400),
    ],
)
def test_a_wrong_field_is_named(client, field, value, status):
    asked = {"model": "storyteller", "messages": SUM, "extra_body": {field: value}}
    with pytest.raises(openai.APIStatusError) as raised:
        client.chat.completions.create(**asked)
    assert raised.value.status_code == status
    assert raised.value.param == field


def test_anthropic_client(messages):
    answer = messages.create(model="storyteller", max_tokens=20, messages=SUM)
    assert answer.content[0].text == " 72."
    assert answer.stop_reason == "end_turn"
    with messages.stream(
        model="storyteller", max_tokens=60, messages=STORY, system="Be kind.", stop_sequences=["the"]
    ) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert "the" not in text
    assert final.content[0].text == text
    assert (final.stop_reason, final.stop_sequence) == ("stop_sequence", "the")
    assert final.usage.output_tokens > 0
    assert messages.count_tokens(model="storyteller", messages=SUM).input_tokens == 8
    with pytest.raises(anthropic.BadRequestError, match="holds 768"):
        messages.create(model="storyteller", max_tokens=10_000, messages=SUM)


def test_responses(client):
    answer = client.responses.create(model="storyteller", input="27 + 45")
    assert (answer.output_text, answer.status) == (" 72.", "completed")
    asked = {
        "input": [{"role": "user", "content": "a kind owl"}],
        "instructions": "Be kind.",
        "max_output_tokens": 9,
    }
    events = list(client.responses.create(model="storyteller", stream=True, **asked))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    final = events[-1].response
    assert final.output_text == "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert (final.status, final.usage.output_tokens) == ("incomplete", 9)


def test_tokens(url, client):
    def ask(path, body):
        request = urllib.request.Request(url + path, json.dumps(body).encode())
        return json.load(urllib.request.urlopen(request, timeout=60))

    tokens = ask("/tokenize", {"prompt": "Once upon a time"})
    assert tokens["count"] == len(tokens["tokens"]) == 5
    assert ask("/detokenize", {"tokens": tokens["tokens"][1:]}) == {"prompt": "Once upon a time"}
    answer = client.completions.create(model="storyteller", prompt=tokens["tokens"], max_tokens=1)
    assert answer.usage.prompt_tokens == 5


def test_pages_are_free_after_all(url, client):
    for i in range(20):
        stream = client.completions.create(model="storyteller", prompt="Once", max_tokens=700, stream=True)
        if i % 2:
            next(iter(stream))
        stream.close()
    counts = ""
    # Pages are free after the step that runs.
    while not all(f"heddle_{name} 0\n" in counts for name in ("requests_answering", "kv_pages_used")):
        time.sleep(0.01)
        counts = read(url, "/metrics")
    assert read(url, "/health") == '{"status":"ok"}'


def test_sigterm_lets_answers_end_and_the_log_has_no_text(tmp_path):
    with server(MODEL, "--log", "json") as (url, process):
        client = openai.OpenAI(base_url=url + "/v1", api_key="secret-key", max_retries=0)
        stream = client.completions.create(
            model="storyteller", prompt="Once upon a secret", max_tokens=200, stream=True
        )
        pieces = iter(stream)
        next(pieces)
        process.send_signal(signal.SIGTERM)
        ends = [piece.choices[0].finish_reason for piece in pieces]
        assert ends[-1] in ("stop", "length")
        log = process.stderr.read()
        assert process.wait(timeout=60) == 0
    record = json.loads(next(line for line in log.splitlines() if line.startswith("{")))
    assert (record["path"], record["status"]) == ("/v1/completions", 200)
    assert record["answer_tokens"] > 1
    assert "secret" not in log


def test_the_page_talks_with_the_model(url):
    sync_api = pytest.importorskip("playwright.sync_api")
    browser = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not browser:
        pytest.skip("there is no browser here: scripts/setup browser installs one")
    with sync_api.sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        page.set_default_timeout(180_000)  # on a busy machine too
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(url)
        page.wait_for_function("document.title == 'storyteller'")
        page.fill("#text", "27 + 45")
        page.press("#text", "Enter")
        page.wait_for_function("document.querySelector('.assistant')?.textContent == ' 72.'")
        page.fill("#text", "2000 / 3")
        page.press("#text", "Enter")
        page.wait_for_selector(".error")
    assert faults == []


def test_what_must_not_bring_it_down():
    """Slow clients, clients that leave, many requests, a stopped engine, SIGTERM: a few of each."""
    script = Path(__file__).parents[2] / "scripts" / "stress_server.py"
    ran = subprocess.run([sys.executable, script, "--quick"], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "engine stopped" in ran.stdout or "ptrace" in ran.stdout
