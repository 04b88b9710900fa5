"""Calls of tools through `heddle serve`, with the official clients and a model that says these texts."""

import asyncio
import json

import pytest

from serving import STORYTELLER, make_scripted_model, server

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

CALLS = (
    'I look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'
)
TRANSCRIPTS = {
    "calls": CALLS,
    "text": "It costs <tool_call> or less.",
    "thanks": "It is 21 degrees.",
    "mistral": '[TOOL_CALLS] [{"name": "clock", "arguments": {}}]',
    "broken": '<tool_call>{"name": "clock", "arguments": {1: 2}}</tool_call>',
}
# It takes a result alone where the call comes before it as the model wrote it.
TEMPLATE = """{%- set ask = (messages | selectattr('role', 'equalto', 'user') | list)[-1].content %}
{%- set last = messages[-1] %}
{%- if tools %}{{ tools | tojson }} answer with <tool_call> {% endif %}
{%- if last.role == 'tool' %}
  {%- set calls = (messages | selectattr('tool_calls') | list)[-1].tool_calls %}
  {%- if calls | length != 2 or calls[0].function.arguments.city != 'Zürich' or last.content != 'noon' %}
    {{- raise_exception('The calls are lost') }}
  {%- endif %}
  {%- set ask = 'thanks' %}
{%- endif %}
{{- '<say:' + ask + '>' }}"""

NO_ARGUMENTS = {"type": "object", "properties": {}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
SCHEMAS = {"weather": CITY, "clock": NO_ARGUMENTS}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()
]
RESPONSES_TOOLS = [
    {"type": "function", "name": name, "parameters": schema, "strict": False}
    for name, schema in SCHEMAS.items()
]
ANTHROPIC_TOOLS = [{"name": name, "input_schema": schema} for name, schema in SCHEMAS.items()]
WANTED = [("weather", {"city": "Zürich"}), ("clock", {})]
RESULTS = ["21", "noon"]


def ask(what):
    return [{"role": "user", "content": what}]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_scripted_model(tmp_path_factory.mktemp("scripted") / "scripted", TRANSCRIPTS, TEMPLATE)


@pytest.fixture(scope="module")
def url(model):
    with server(model, "--log", "none") as (address, _):
        yield address


@pytest.fixture(scope="module")
def client(url):
    return openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def messages(url):
    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages


def chat(client, what, **more):
    return client.chat.completions.create(model="scripted", messages=ask(what), **({"tools": TOOLS} | more))


def named(calls):
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


def test_chat(client):
    choice = chat(client, "calls").choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "I look."
    assert named(choice.message.tool_calls) == WANTED
    assert len({call.id for call in choice.message.tool_calls}) == 2
    talk = [*ask("calls"), choice.message]
    for call, result in zip(choice.message.tool_calls, RESULTS, strict=True):
        talk.append({"role": "tool", "tool_call_id": call.id, "content": result})
    after = client.chat.completions.create(model="scripted", messages=talk, tools=TOOLS).choices[0]
    assert (after.message.content, after.finish_reason) == ("It is 21 degrees.", "stop")
    assert after.message.tool_calls is None


def test_chat_stream(client):
    asked = {"model": "scripted", "messages": ask("calls"), "tools": TOOLS}
    with client.chat.completions.stream(**asked) as stream:
        events = list(stream)
        final = stream.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls"
    assert final.message.content == "I look."
    assert named(final.message.tool_calls) == WANTED
    deltas = [
        call
        for event in events
        if event.type == "chunk" and event.chunk.choices
        for call in event.chunk.choices[0].delta.tool_calls or []
    ]
    begun = [delta for delta in deltas if delta.id]
    assert [(delta.index, delta.function.name, delta.function.arguments) for delta in begun] == [
        (0, "weather", ""),
        (1, "clock", ""),
    ]
    assert sum(delta.index == 0 for delta in deltas) > 3, "arguments come in pieces"


def test_chat_async(url):
    async def both():
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="none") as client:
            asked = {"model": "scripted", "messages": ask("calls"), "tools": TOOLS}
            whole = await client.chat.completions.create(n=2, **asked)
            pieces = await client.chat.completions.create(stream=True, **asked)
            reasons = [chunk.choices[0].finish_reason async for chunk in pieces]
            return whole, reasons

    whole, reasons = asyncio.run(both())
    assert [named(choice.message.tool_calls) for choice in whole.choices] == [WANTED] * 2
    assert reasons[-1] == "tool_calls"


def test_one_call(client):
    for stream in (False, True):
        answer = chat(client, "calls", parallel_tool_calls=False, stream=stream)
        if stream:
            chunks = [chunk.choices[0] for chunk in answer]
            calls = [call for chunk in chunks for call in chunk.delta.tool_calls or []]
            assert {call.index for call in calls} == {0}
            assert chunks[-1].finish_reason == "tool_calls"
        else:
            assert named(answer.choices[0].message.tool_calls) == WANTED[:1]
            assert answer.choices[0].finish_reason == "tool_calls"
            assert answer.usage.completion_tokens < len(CALLS) // 2


def test_text_that_is_no_call(client):
    for asked in ({}, {"tool_choice": "none"}, {"tools": openai.NOT_GIVEN}):
        choice = chat(client, "text", **asked).choices[0]
        assert choice.message.content == TRANSCRIPTS["text"]
        assert choice.finish_reason == "stop"
    assert chat(client, "calls", tool_choice="none").choices[0].message.content == CALLS
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chat(client, "text", stream=True))
    assert text == TRANSCRIPTS["text"]


def test_a_call_that_is_cut(client, messages):
    choice = chat(client, "calls", max_tokens=28).choices[0]
    assert choice.finish_reason == "length"
    assert choice.message.tool_calls[0].function.name == "weather"
    # Arguments that are no JSON are told as the model wrote it.
    assert chat(client, "broken").choices[0].message.tool_calls[0].function.arguments == "{1: 2}}"
    answer = messages.create(model="scripted", max_tokens=90, messages=ask("broken"), tools=ANTHROPIC_TOOLS)
    assert answer.content[0].input == {"INVALID_JSON": "{1: 2}}"}


def test_messages(messages):
    asked = {"model": "scripted", "max_tokens": 200, "tools": ANTHROPIC_TOOLS}
    answer = messages.create(messages=ask("calls"), **asked)
    assert answer.stop_reason == "tool_use"
    assert [block.type for block in answer.content] == ["text", "tool_use", "tool_use"]
    assert [(block.name, block.input) for block in answer.content[1:]] == WANTED
    with messages.stream(messages=ask("calls"), **asked) as stream:
        events = list(stream)
        final = stream.get_final_message()
    assert final.stop_reason == "tool_use"
    assert [block.type for block in final.content] == ["text", "tool_use", "tool_use"]
    assert [(block.name, block.input) for block in final.content[1:]] == WANTED
    assert sum(event.type == "input_json" for event in events) > 3
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": result}
        for block, result in zip(answer.content[1:], RESULTS, strict=True)
    ]
    talk = [
        *ask("calls"),
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": results},
    ]
    after = messages.create(messages=talk, **asked)
    assert (after.content[0].text, after.stop_reason) == ("It is 21 degrees.", "end_turn")
    one = messages.create(
        messages=ask("calls"), tool_choice={"type": "auto", "disable_parallel_tool_use": True}, **asked
    )
    assert [block.type for block in one.content] == ["text", "tool_use"]


def test_messages_async(url):
    async def stream():
        async with anthropic.AsyncAnthropic(base_url=url, api_key="none") as client:
            asked = {"model": "scripted", "max_tokens": 200, "tools": ANTHROPIC_TOOLS}
            async with client.messages.stream(messages=ask("calls"), **asked) as stream:
                return await stream.get_final_message()

    final = asyncio.run(stream())
    assert [(block.name, block.input) for block in final.content[1:]] == WANTED


def test_responses(client):
    answer = client.responses.create(model="scripted", input=ask("calls"), tools=RESPONSES_TOOLS)
    assert answer.output_text == "I look."
    calls = [item for item in answer.output if item.type == "function_call"]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == WANTED
    talk = [*ask("calls"), *answer.output]
    talk += [
        {"type": "function_call_output", "call_id": call.call_id, "output": result}
        for call, result in zip(calls, RESULTS, strict=True)
    ]
    after = client.responses.create(model="scripted", input=talk, tools=RESPONSES_TOOLS)
    assert after.output_text == "It is 21 degrees."
    with client.responses.stream(model="scripted", input=ask("calls"), tools=RESPONSES_TOOLS) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [item.type for item in final.output] == ["message", "function_call", "function_call"]
    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert [json.loads(event.arguments) for event in done] == [arguments for _, arguments in WANTED]
    assert (
        "".join(
            event.delta
            for event in events
            if event.type == "response.function_call_arguments.delta" and event.output_index == 1
        )
        == '{"city": "Zürich"}'
    )


def test_ids_that_a_template_asks_for(model, tmp_path):
    template = tmp_path / "mistral.jinja"
    template.write_text(
        "{% if tools %}[TOOL_CALLS]{% endif %}{% for m in messages %}{% for call in m.tool_calls or [] %}"
        "{% if call.id | length != 9 %}{{ raise_exception('no id') }}{% endif %}{% endfor %}{% endfor %}<say:"
        "{{ 'thanks' if messages | length > 1 else 'mistral' }}>"
    )
    with server(model, "--log", "none", "--template", str(template)) as (url, _):
        client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
        message = chat(client, "anything").choices[0].message
        assert named(message.tool_calls) == [("clock", {})]
        talk = [
            *ask("anything"),
            message,
            {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "noon"},
        ]
        after = client.chat.completions.create(model="scripted", messages=talk, tools=TOOLS)
        assert after.choices[0].message.content == "It is 21 degrees."


HELD_TEMPLATE = (
    "{% if tools %}{{ '' if tools else '<tool_call>' }}{% endif %}Once upon a time {{ messages[-1].content }}"
)
DAYS = {
    "type": "object",
    "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 30}},
    "required": ["days"],
    "additionalProperties": False,
}
ODD = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
HELD = {"weather": DAYS, "clock": NO_ARGUMENTS}


def check_held(name, arguments):
    assert name in HELD
    assert set(arguments) == set(HELD[name]["properties"])
    assert 1 <= arguments.get("days", 1) <= 30


@pytest.fixture(scope="module")
def held_url(tmp_path_factory):
    template = tmp_path_factory.mktemp("held") / "hermes.jinja"
    template.write_text(HELD_TEMPLATE)
    with server(STORYTELLER, "--log", "none", "--template", str(template)) as (address, _):
        yield address


def test_calls_that_must_come(held_url):
    client = openai.OpenAI(base_url=held_url + "/v1", api_key="none", max_retries=0)
    tools = [{"name": name, "parameters": schema, "strict": True} for name, schema in HELD.items()]
    asked = {"model": "storyteller", "messages": ask("a fox")}
    asked["tools"] = [{"type": "function", "function": tool} for tool in tools]
    one = {"type": "function", "function": {"name": "weather"}}
    some = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [one]}}
    for choice in ("required", one, some):
        answer = client.chat.completions.create(tool_choice=choice, seed=3, temperature=1, **asked).choices[0]
        assert (answer.finish_reason, answer.message.content) == ("tool_calls", None), answer
        [call] = named(answer.message.tool_calls)
        check_held(*call)
        assert choice == "required" or call[0] == "weather"
    with client.chat.completions.stream(tool_choice=one, **asked) as stream:
        final = stream.get_final_completion().choices[0]
    assert named(final.message.tool_calls)[0][0] == "weather"
    answer = client.responses.create(
        model="storyteller",
        input="a fox",
        tools=[{"type": "function"} | tool for tool in tools],
        tool_choice={"type": "function", "name": "weather"},
    )
    check_held(answer.output[0].name, json.loads(answer.output[0].arguments))
    cut = client.chat.completions.create(tool_choice=one, max_tokens=24, **asked).choices[0]
    assert cut.finish_reason == "length"


def test_messages_that_must_call(held_url):
    messages = anthropic.Anthropic(base_url=held_url, api_key="none", max_retries=0).messages
    tools = [{"name": name, "input_schema": schema} for name, schema in HELD.items()]
    asked = {"model": "storyteller", "messages": ask("a fox"), "tools": tools}
    for choice in ({"type": "any"}, {"type": "tool", "name": "weather"}):
        answer = messages.create(max_tokens=200, tool_choice=choice, **asked)
        assert answer.stop_reason == "tool_use"
        [block] = answer.content
        check_held(block.name, block.input)
        assert choice["type"] == "any" or block.name == "weather"


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"tool_choice": "must"}, "auto, none, required"),
        ({"tool_choice": {"type": "function", "function": {"name": "other"}}}, "other"),
        ({"tool_choice": "required", "tools": []}, "no tools"),
        ({"tool_choice": "required", "response_format": {"type": "json_object"}}, "another form"),
        (
            {
                "tool_choice": "required",
                "tools": [{"type": "function", "function": {"name": "f", "strict": True, "parameters": ODD}}],
            },
            "uniqueItems",
        ),
    ],
)
def test_choices_that_are_refused(held_url, more, part):
    client = openai.OpenAI(base_url=held_url + "/v1", api_key="none", max_retries=0)
    with pytest.raises(openai.BadRequestError, match=part):
        client.chat.completions.create(
            **({"model": "storyteller", "messages": ask("a fox"), "tools": TOOLS} | more)
        )


def test_a_schema_that_nobody_promised_to_keep(held_url):
    client = openai.OpenAI(base_url=held_url + "/v1", api_key="none", max_retries=0)
    tool = {"type": "function", "function": {"name": "f", "parameters": ODD}}
    answer = client.chat.completions.create(
        model="storyteller", messages=ask("a fox"), tools=[tool], tool_choice="required", max_tokens=60
    )
    assert answer.choices[0].message.tool_calls[0].function.name == "f"
