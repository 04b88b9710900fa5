"""Templates: text with choices and slots, rendered against a scene.

    The [fox|hare] {@ran} to {p.to}. ^{h.he} was [tired|].

[a|b|] is a choice (parts may nest and may be empty), {h} and {h.he} read the scene, {@rule} draws from a
shared rule, "a~" becomes "a" or "an" by the next letter, "^" makes the next letter a capital. The first
letter of the text and letters after ". ", "! ", "? " and '." ' become capitals by themselves; after '!" ' and
'?" ' they do not, because '"Stop!" cried the fox' goes on in the same sentence.
"""

import re
from dataclasses import dataclass

ARTICLE = re.compile(r"\b([Aa])~ (\^?)(\w+)")
CONSONANT_SOUND = ("un", "use", "one", "once", "eu")
VOWEL_SOUND = ("hour", "honest")
SENTENCE_START = re.compile(r"(^|[.!?] |\.\" |\n)([a-z])")
CAPITAL = re.compile(r"\^([\"']?)(\w)")
SPACES = re.compile(r" {2,}")


@dataclass(frozen=True)
class Slot:
    """A path into the scene: name, then attributes."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """A shared rule: one of its templates is drawn at each use."""

    name: str


@dataclass(frozen=True)
class Choice:
    parts: tuple["Template", ...]


@dataclass(frozen=True)
class Template:
    nodes: tuple["str | Slot | Rule | Choice", ...]


def parse(text: str) -> Template:
    """Parses one template; raises ValueError with the text on an unbalanced bracket."""
    parts, end = _parse_parts(text, 0, closing="")
    if end != len(text) or len(parts) != 1:
        raise ValueError(f"[template] unbalanced brackets: {text!r}; each '[' needs its ']'")
    return parts[0]


def _parse_parts(text: str, at: int, closing: str) -> tuple[list[Template], int]:
    """Parses up to `closing`, splitting at '|' when inside a choice."""
    parts: list[Template] = []
    nodes: list = []
    literal = ""

    def flush() -> None:
        nonlocal literal
        if literal:
            nodes.append(literal)
            literal = ""

    while at < len(text):
        char = text[at]
        if char == "[":
            flush()
            inner, at = _parse_parts(text, at + 1, closing="]")
            nodes.append(Choice(tuple(inner)))
        elif char == "{":
            flush()
            end = text.index("}", at)
            nodes.append(_slot(text[at + 1 : end]))
            at = end
        elif char == "|" and closing:
            flush()
            parts.append(Template(tuple(nodes)))
            nodes = []
        elif char == closing:
            break
        else:
            literal += char
        at += 1
    flush()
    parts.append(Template(tuple(nodes)))
    return parts, at


def _slot(text: str) -> Slot | Rule:
    return Rule(text[1:]) if text.startswith("@") else Slot(tuple(text.split(".")))


class Renderer:
    """Renders templates against one scene with one random generator."""

    def __init__(self, scene: dict, rules: dict[str, list[Template]], draw):
        self.scene = scene
        self.rules = rules
        self.draw = draw  # picks one element of a sequence

    def text(self, template: Template) -> str:
        out: list[str] = []
        self._render(template, out)
        return finish("".join(out))

    def _render(self, template: Template, out: list[str]) -> None:
        for node in template.nodes:
            if isinstance(node, str):
                out.append(node)
            elif isinstance(node, Choice):
                self._render(self.draw(node.parts), out)
            elif isinstance(node, Rule):
                self._render(self.draw(self.rules[node.name]), out)
            else:
                self._render_value(self._look_up(node), out)

    def _render_value(self, value, out: list[str]) -> None:
        if isinstance(value, Template):
            self._render(value, out)
        elif isinstance(value, dict):
            self._render_value(value["name"], out)
        else:
            out.append(value)

    def _look_up(self, slot: Slot):
        value = self.scene
        for name in slot.path:
            if not isinstance(value, dict) or name not in value:
                raise KeyError(
                    f"[template] no value for slot {'.'.join(slot.path)!r}; known: {sorted(value)}"
                )
            value = value[name]
        return value


def finish(text: str) -> str:
    """Resolves articles, capitals and spaces of a rendered text."""
    text = SPACES.sub(" ", text).replace(" .", ".").replace(" ,", ",").strip()
    text = ARTICLE.sub(_article, text)
    text = SENTENCE_START.sub(lambda m: m[1] + m[2].upper(), text)
    return CAPITAL.sub(lambda m: m[1] + m[2].upper(), text)


def _article(match: re.Match) -> str:
    word = match[3].lower()
    vowel = word.startswith(VOWEL_SOUND) or (word[0] in "aeiou" and not word.startswith(CONSONANT_SOUND))
    if word.startswith(("under", "unhappy", "unusual", "uneven", "unlucky", "unkind")):
        vowel = True
    return f"{match[1]}{'n' if vowel else ''} {match[2]}{match[3]}"
