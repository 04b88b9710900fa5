# ruff: noqa: E501
"""Small chat templates, each of which shows a construct; some are refused."""

VARIABLES = {
    "words": ["b", "A", "c", "a"], "empty": [], "text": "  Straße ΣΑΣ, it's 3.5 \n", "number": 7, "half": 2.5,
    "deep": {"b": [1, {"x": None}], "a": "é\n\"<&>'\u2028\U0001f642", "items": 3}, "yes": True, "nothing": None,
    "people": [{"name": "Ann", "age": 3}, {"name": "bob", "age": 2}, {"name": "Cy"}],
}  # fmt: skip

# Templates that are one expression.
EXPRESSIONS = r"""
1 + 2 * 3 - 4 ** 2 ** 0
-2 ** 2
7 // 2, -7 // 2, 7 % -3, -7 % 3, 7 / 2, 1e3, 1.5e-7, 10 ** 16 * 1.0, 2 ** 62, 2 ** -1
2 ** 63
-9223372036854775807 - 1
1 / 0
0.1 + 0.2, 1e16, 123456789.0, 1e-5, 5 // 2.0, -5.5 % 2
"a" "b" ~ 1 ~ none ~ true ~ 1.0
"x" * 3 + "y", 2 * [1, 2], (1,) + (2, 3), [1] + [2]
"a" + 1
[1] + (2,)
1 < 2 < 3, 3 > 2 > 2, 1 == 1.0, true == 1, "a" < "b", [1, 2] < [1, 3], none == none, 1 != "1"
1 < "a"
"a" in "abc", 1 in [1, 2], "b" in deep, "z" not in deep, 5 not in (1, 2)
1 in "abc"
not yes or nothing and 1, yes and 0, nothing or "x", not not yes
"x" if yes else "y", "x" if nothing, ("a" if nothing else "b" if nothing else "c")
missing, missing is defined, missing is undefined, missing == other
missing.name
missing ~ "x", missing | length, missing | list, missing | default("d"), nothing | default("d"), nothing | default("d", true)
missing + 1
missing()
deep.items(), 1
deep.items() | list, deep["items"], deep.b[1].x, deep.nope is defined, deep.get("nope"), deep.get("a", 1) | length
deep | items | list, deep.keys() | list, deep.values() | length
deep | tojson
deep | tojson(indent=2)
deep | tojson(ensure_ascii=true, sort_keys=true, separators=(",", ":"))
[1.0, 1e20, 1e-9, -0.0, true, none, "\x7f\x01"] | tojson
missing | tojson
(words | map("upper")) | tojson
deep
[text, "it's", 'say "x"', "both ' and \"", "tab\t\\", "\u200b\xad\U0001f642\ue000"]
{"a": (1,), "b": ()}
words[0], words[-1], words[9] is defined, words[1:3], words[::-1], words[::2], words[-2:], words[5:], words[:-9]
text[2:8], text[-3:], text[::-1], text[2], "🙂é"[1], "🙂é" | length, text[100] is defined
words["0"] is defined, words.0, nothing.x is defined, (1).x is defined
text.strip(), text.lstrip(), text.rstrip(), text.upper(), text.lower(), text.title(), text.strip().capitalize()
"xxaxx".strip("x"), "xaxy".rstrip("yx"), "a,b,,c".split(","), " a  b c ".split(), " a  b c ".split(none, 1), "a-b-c".rsplit("-", 1)
" a  b c ".rsplit(none, 1), "".split(), "".split(","), "a\nb\r\nc\x0b".splitlines(), "a".split("")
"a\nb\r\nc\x0b".splitlines(), "a\n\nb".splitlines(true), "a b".partition(" "), "a b c".rpartition(" "), "ab".partition("x")
"abc".startswith("ab"), "abc".endswith(("x", "c")), "abcabc".replace("b", "x"), "abcabc".replace("b", "x", 1), "ab".replace("", "-")
"abcabc".find("c"), "abcabc".rfind("c"), "abc".find("x"), "abcabc".count("bc"), ", ".join(words), "éab".index("b"), "abc".index("x")
"pre-x".removeprefix("pre-"), "x.py".removesuffix(".py"), "x".removesuffix(".py"), words.index("c"), words.count("a")
"abc".nope is defined
"abc".encode("utf-8")
words.append("x")
words.nope()
text | trim, text | upper, text | lower, text | title, text | capitalize, nothing | trim, 5 | trim, "--a--" | trim("-")
"hello wORLD-foo (bar)" | title, "ǆ ß ﬁ" | upper, "ǆ ß ﬁ" | title, "ΑΣ ΑΣΑ Σ" | lower, "İI" | lower
"a\nb\n\nc" | indent, "a\nb\n\nc" | indent(2, true, true), "a\nb" | indent("> "), "a\r\nb\n" | indent(1)
5 | indent
words | join, words | join(", "), people | join("-", attribute="name"), "abc" | join("."), [1, none, [2]] | join(" ")
words | first, words | last, empty | first is defined, "abc" | first, "abc" | last, deep | first, [] | last
words | map("upper") | list, people | map(attribute="age") | list, people | map(attribute="age", default=0) | list
people | map(attribute="name") | map("upper") | map("replace", "A", "_") | join(",")
words | map("nope") | list
words | select("equalto", "a") | list, [0, 1, 2] | select | list, [1, 2, 3] | select("odd") | list, [1, 2] | reject("even") | list
people | selectattr("age") | map(attribute="name") | list, people | rejectattr("age", "defined") | list
people | selectattr("age", "gt", 2) | list | length, people | selectattr("age", "ge", 2) | list | length
people | selectattr("name", "in", ["Ann", "Cy"]) | map(attribute="name") | join, words | select("in", "ab") | list
words | sort, words | sort(reverse=true), words | sort(case_sensitive=true), people | sort(attribute="name") | map(attribute="name") | list
[3, 1.5, true] | sort, [[2, 1], [1, 2]] | sort
[1, "a"] | sort
words | unique | list, [1, 1.0, true, 2] | unique | list, words | unique(true) | list
words | reverse | list, "abc" | reverse, words | min, words | max, [] | max is defined, [3, 1] | min, people | max(attribute="name")
[1, 2.5] | sum, people | sum(attribute="age", start=1), [[1], [2]] | sum(start=[])
people[:2] | sum(attribute="age", start=10), [] | sum
"3" | int, "3.9" | int, " -12 " | int, "x" | int, "x" | int(9), none | int(3), 3.99 | int, true | int, "1_000" | int, "1e3" | int
"0x1f" | int, "" | int, "1__0" | int, "+5" | int, "inf" | int
"3.5" | float, "x" | float, 3 | float, "nan" | float | string, "1e400" | float, "1_0.5" | float, none | float
"x" | int(base=16)
2.5 | round, 3.5 | round, 2.675 | round(2), 7 | round, 2.4 | round(0, "ceil"), 2.55 | round(1, "floor"), -2.5 | round
-3 | abs, -2.5 | abs, "a" | abs
deep | dictsort | first, {"b": 1, "A": 2} | dictsort, {"b": 1, "A": 2} | dictsort(true), {"b": 1, "A": 2} | dictsort(by="value", reverse=true)
[1, 2, 3, 4, 5] | batch(2) | list, [1, 2, 3] | batch(2, 0) | list
words | length, words | count, deep | length, (words | map("upper")) | length
"a.b" | replace(".", "-"), 5 | replace("5", 6), "aaa" | replace("a", "b", 2)
5 | string + "x", [1] | string, "a" | safe ~ "<b>"
"<b>" | safe
["<b>" | safe]
("<b>" | safe) + "<c>"
1 is odd, 2 is even, 9 is divisibleby 3, 1 is number, 1.0 is float, 1 is integer, true is integer, true is number, true is boolean
words is iterable, 5 is iterable, "a" is iterable, words is sequence, deep is sequence, deep is mapping, "a" is string, nothing is none
words is mapping, yes is true, 1 is true, nothing is false, false is false, 1 is sameas true, yes is sameas true, range is callable
"a" is in "abc", 1 is in [1], "abc" is lower, "ABC" is upper, "1" is lower, 2 is gt 1, 1 is lessthan 2, 1 is eq 1, 1 is ne 2
not 1 is odd, 1 is not odd, missing is not defined, 1 is odd and 2 is even, 2 is not odd | string
1 is nope
1 | nope
range(3) | list, range(1, 7, 2) | list, range(3, 0, -1) | list, range(3)[1], range(0) | length
range(3)
range(1000000) | list
dict(a=1, b=[2]), dict({"x": 1}, y=2), {"a": 1, "a": 2}
namespace(a=1).a, namespace(a=1).b is defined
namespace(_a=1).a
strftime_now("%d %b %Y"), strftime_now("%Y-%m-%d %H:%M:%S %j %A %B %p"), strftime_now(""), strftime_now("%-d/%-m")
raise_exception("no")
[1, 2,], {"a": 1,}, (1,), ()
(1, 2)[0], "a,b".split(",")[1], [[1, 2], [3]][0][1], {"a": {"b": 1}}.a.b
'\u00e9\x41\n\'\"\\ \q'
"a" is defined, 3 is defined if yes else 4
(words | map("upper") | list)[0], ("a" ~ "b") | upper, -1 | abs, (-1) | abs, - 1 | abs, +3
words | map("upper") is iterable, (words | select) is sequence
text.strip().split(" ")[0].lower().replace("ß", "ss")
loop
__class__
"".__class__
deep.__len__
""".strip().split("\n")

# Whole templates: statements, scopes, white space.
TEMPLATES = [
    "{% for w in words %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}"
    "{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('x', 'y') }};{% endfor %}",
    "{% for w in empty %}x{% else %}none{% endfor %}",
    "{% for w in missing %}x{% else %}none{% endfor %}",
    "{% for w in nothing %}x{% endfor %}",
    "{% for w in words if w != 'A' %}{{ loop.index }}{{ w }}{{ loop.length }}{% else %}none{% endfor %}",
    "{% for w in words if w == 'z' %}{{ w }}{% else %}none{% endfor %}",
    "{% for k, v in deep.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in deep | dictsort %}{{ k }};{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3)), [4, [5, 6]]] %}{{ a }}{{ b }}{{ c }};{% endfor %}",
    "{% for a, b in [1] %}{{ a }}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "{% for k in deep %}{{ k }}{% endfor %}{% for c in 'aé' %}[{{ c }}]{% endfor %}",
    "{% for i in range(3) %}{% for j in range(2) %}{{ loop.index }}{{ i }}{{ j }} {% endfor %}{{ loop.index }};{% endfor %}",
    "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in range(3) %}{% break %}{% else %}else{% endfor %}",
    "{% for i in range(3) %}{{ loop.changed(i // 2) }}{% endfor %}",
    "{% break %}",
    "{% for i in range(2) %}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% for i in range(2) %}{{ x }}{% set x = x + 5 %}{{ x }};{% endfor %}{{ x }}",
    "{% for i in range(3) %}{% if loop.first %}{% set y = 'first' %}{% endif %}{{ y }},{% endfor %}",
    "{% if yes %}{% set x = 1 %}{% endif %}{{ x }}{% if nothing %}{% set z = 1 %}{% endif %}{{ z is defined }}",
    "{% set ns = namespace(n=0) %}{% for w in words %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
    "{% set ns = namespace() %}{% set ns.x %}block{% endset %}{{ ns.x }}{{ ns['x'] }}",
    "{% set words.x = 1 %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}",
    "{% set x %}  a {{ number }} b {% endset %}[{{ x }}]{% set x | upper | trim %} q {% endset %}[{{ x }}]",
    "{% filter upper | replace('A', '_') %}abc {{ words }}{% endfilter %}",
    "{% with a = 1, b = number %}{{ a }}{{ b }}{% set a = 9 %}{{ a }}{% endwith %}{{ a is defined }}",
    "{% macro m(a, b=2, c=b) %}[{{ a }}{{ b }}{{ c }}{{ d }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}",
    "{% macro m(a) %}x{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}x{% endmacro %}{{ m(b=2) }}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{{ number }}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}{% set x = 2 %}{{ m() }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
    "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(4) }}",
    "{% macro m(x) %}<{{ x }}>{% endmacro %}{% for w in words %}{{ m(w) | length }}{{ m(loop.index) ~ '!' }}{% endfor %}",
    "{% for i in range(2) %}{% generation %}{% set q = i %}{{ q }}{% endgeneration %}{{ q is defined }}{% endfor %}",
    "{% raw %}{{ x }}{% if %}{% endraw %}|{%- raw -%}  a  {%- endraw -%}  |",
    "a\n  {% if yes %}\n    b\n  {% endif %}\nc\n",
    "a\n  {%- if yes %}\n    b\n  {%- endif %}\nc\n",
    "a\n  {% if yes -%}\n    b\n  {% endif -%}\nc\n\n",
    "  {%+ if yes %}\n b {%+ endif +%}\nc",
    "a  {{- number -}}  b  {{ number }}  \n{{ number }}\n\n",
    "a {# comment #}\n  {# c #}\nb\n{#- x -#}\n c {#+ y +#}\nd",
    "{% if yes %}\n{% endif %}\n\n x {% if yes %} y {% endif %} z",
    "\r\na\r\n{% if yes %}\r\nb\r{% endif %}\r\n",
    "\u00a0 {%- if yes -%} \u3000 x \u2003{%- endif %}\x1c",
    "{{ '}}' }}{{ {'a': {'b': 1}} }}{{ \"%}\" }}{% if '%}' %}y{% endif %}",
    "{ { } } {% % } {",
    "{{ 1 }",
    "{% if yes %}",
    "{% endif %}",
    "{% if yes %}{% endfor %}",
    "{% nope %}",
    "{% for %}{% endfor %}",
    "{{ }}",
    "{{ 1 2 }}",
    "{{ 'a }}",
    "{{ (1 }}",
    "{{ [1) }}",
    "{# no end",
    "{% if nothing %}a{% elif number > 5 %}b{% elif yes %}c{% else %}d{% endif %}",
    "{% if missing.x %}a{% endif %}",
    "{{ messages[0].role }}{{ tools is none }}{{ documents }}{{ add_generation_prompt }}{{ bos_token }}{{ eos_token }}{{ pad_token }}",
    "{{ messages | length }}{% set messages = [] %}{{ messages | length }}",
    "{% set range = 5 %}{{ range }}",
    "{% set ns = namespace(list=[]) %}{% for w in words %}{% set ns.list = ns.list + [w] %}{% endfor %}{{ ns.list }}",
    "{% set g = words | map('upper') %}{{ g | join }}{{ g | join }}{% if empty | map('upper') %}true{% endif %}",
    "{% for p in people %}{{ p.name }}{% if p.age is defined and p.age > 2 %}!{% endif %}{{ ', ' if not loop.last }}{% endfor %}",
    "{{ 'x' if messages[-1]['role'] == 'user' and (messages | length) % 2 == 1 else 'y' }}",
]

CONSTRUCTS = [f"{{{{ {expression} }}}}" for expression in EXPRESSIONS] + TEMPLATES
