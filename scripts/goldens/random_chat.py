# ruff: noqa: E501
"""Random conversations that take a chat template through its branches: system messages or none, wrong orders,
tools and their answers, thoughts, content in parts, white space and markers in texts."""

import random

from random_text import WORDS

MARKERS = [
    "<think>\nwell\n</think>\n\n", "</think>", "<think>", "<|im_end|>", "[INST]", "<tool_call>", "{{ x }}", "{% if %}",
    "\\n", "\"quoted\" & 'single'", "<b>&amp;</b>", "<tool_response>x</tool_response>",
]  # fmt: skip
SPACES = ["", "", "", " ", "\n", "  \n\n", "\t", "\u00a0", "\r\n", "\u2028"]
NAMES = ["get_weather", "add", "suche_text", "no_op"]


class RandomChat:
    """Draws requests: {"messages", "extra", "add_generation_prompt"}; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def draw(self) -> dict:
        pick = self.random
        tools = pick.random() < 0.35
        messages = []
        if pick.random() < 0.5:
            messages.append({"role": "system", "content": self.content()})
        for _ in range(pick.randint(1, 4)):
            messages.append({"role": "user", "content": self.content()})
            if tools and pick.random() < 0.6:
                messages += self.tool_round()
            messages.append(self.answer())
        if pick.random() < 0.7 and len(messages) > 1:
            messages.pop()
        if pick.random() < 0.1:
            pick.shuffle(messages)
        extra = {}
        if tools:
            extra["tools"] = [self.tool() for _ in range(pick.randint(1, 2))]
        for name, values in {
            "enable_thinking": [True, False], "thinking": [True, False], "date_string": ["01 Jan 2025"],
            "tools_in_user_message": [True, False], "custom_tools": [None], "builtin_tools": [["brave_search"], []],
        }.items():  # fmt: skip
            if pick.random() < 0.15:
                extra[name] = pick.choice(values)
        return {"messages": messages, "extra": extra, "add_generation_prompt": pick.random() < 0.6}

    def text(self) -> str:
        pick = self.random
        parts = [pick.choice(SPACES)]
        for _ in range(pick.choice([0, 1, 2, 5, 9])):
            parts += [
                pick.choice(MARKERS) if pick.random() < 0.12 else pick.choice(WORDS),
                pick.choice([" ", " ", "\n"]),
            ]
        return "".join([*parts, pick.choice(SPACES)])

    def content(self) -> str | list:
        if self.random.random() < 0.85:
            return self.text()
        parts: list = [{"type": "text", "text": self.text()} for _ in range(self.random.randint(1, 2))]
        if self.random.random() < 0.4:
            parts.insert(self.random.randrange(2), {"type": "image"})
        return parts

    def answer(self) -> dict:
        message: dict = {"role": "assistant", "content": self.content()}
        if self.random.random() < 0.25:
            message[
                self.random.choice(["reasoning_content", "reasoning_content", "thinking", "reasoning"])
            ] = self.text()
        if self.random.random() < 0.1:
            message["name"] = self.random.choice(WORDS)
        return message

    def arguments(self) -> dict:
        values = [
            1,
            -2.5,
            1e20,
            1e-7,
            True,
            None,
            "Zürich",
            'a "b" <c>',
            [1, "x", []],
            {"unit": "°C", "deep": {"k": [{}]}},
        ]
        return {
            self.random.choice("abcde") * i: self.random.choice(values)
            for i in range(1, self.random.randint(1, 4))
        }

    def tool_round(self) -> list[dict]:
        pick = self.random
        calls = []
        for _ in range(pick.choice([1, 1, 2])):
            call: dict = {
                "type": "function",
                "function": {"name": pick.choice(NAMES), "arguments": self.arguments()},
            }
            if pick.random() < 0.7:
                call["id"] = "".join(pick.choices("abcXYZ0189", k=9))
            calls.append(call)
        message: dict = {"role": "assistant", "tool_calls": calls}
        if pick.random() < 0.5:
            message["content"] = pick.choice([None, "", self.text()])
        answers = []
        for call in calls:
            answer: dict = {"role": pick.choice(["tool", "tool", "tool", "ipython"]), "content": self.text()}
            if pick.random() < 0.7:
                answer |= {"name": call["function"]["name"], "tool_call_id": call.get("id", "abc123XYZ")}
            answers.append(answer)
        return [message, *answers]

    def tool(self) -> dict:
        pick = self.random
        properties = {
            name: {"type": pick.choice(["string", "number", "array"]), "description": self.text()}
            for name in pick.sample(["city", "count", "größe"], pick.randint(0, 3))
        }
        parameters = {"type": "object", "properties": properties, "required": sorted(properties)[:1]}
        function = {"name": pick.choice(NAMES), "description": self.text(), "parameters": parameters}
        if pick.random() < 0.3:
            function["return"] = {"type": "string", "description": "what it gives"}
        return {"type": "function", "function": function}
