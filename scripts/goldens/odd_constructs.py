# ruff: noqa: E501, SIM905
"""Small chat templates with odd inputs, many of them made by rule: every filter, test, method and operator of
Jinja with values of every type, and the constructs that few templates have.
"""

import itertools

# Expressions of every type that a template can have.
VALUES = [
    "missing", "none", "true", "false", "0", "-7", "3", "2.5", "-0.0", "1e300", "18446744073709551616",
    "-36893488147419103232", "''", "'aé B'", "'  x-y_z 12 '", "'<a href=\"x\">T&amp;t</a>'", "('<b>&'|safe)", "'%s'", "'ΑΣ ß ǆ'",
    "'12'", "' -3.5e2'", "'a\\nb\\r\\n c'", "[]", "[3,1,2]", "['b','A',none]", "[[1,'x'],(2,'y')]", "(1,)", "{}", "{'b':1,'a':[2,{}]}",
    "{1:'x',none:2,'k':3}", "range(3)", "people", "deep.items()", "deep.keys()", "deep.values()", "(words|map('upper'))",
    "namespace(a=1)", "['<i>'|safe,'<']", "1e16", "[true,1.5,-2]",
]  # fmt: skip

# Values in pairs, for operators and tests of two.
FEW = ["missing", "none", "true", "-7", "2.5", "18446744073709551616", "'ab'", "('<b>'|safe)", "'%s-%s'", "[1,2]", "(1,2)", "{'a':1}", "range(3)", "0"]  # fmt: skip

FILTERS = """
abs attr('a') batch(2) batch(2,'x') capitalize center center(9) count d default default('d') default('d',true) dictsort
dictsort(true) dictsort(by='value') dictsort(reverse=true) e escape filesizeformat filesizeformat(true) first float
float('d') forceescape format format('x') format(1) format(a=1) format('x','y') groupby('name') groupby('age',default=0)
indent indent(2,true) indent('>',blank=true) int int(5) int('d') int(0,16) items join join('-') join('<')
join(',',attribute='name') last length list lower map('upper') map(attribute='name') map('default','x') max
max(attribute='age') min pprint reject reject('none') rejectattr('age') replace('a','b') replace('','-',2) reverse round
round(1) round(-1) round(1,'ceil') round(0,'floor') safe select select('string') selectattr('age') slice(2) slice(2,'x')
sort sort(reverse=true) sort(attribute='name') sort(attribute='name,age') string striptags sum sum(start=1)
sum(attribute='age',start=0) title tojson tojson(indent=1) tojson(sort_keys=true) trim trim('a<') truncate truncate(3)
truncate(5,true,'..',0) unique unique(true) upper urlencode wordcount wordwrap(5) wordwrap(3,false) wordwrap(4,true,'|')
xmlattr xmlattr(false) nope lower(1) tojson(nope=1)
""".split()

TESTS = """
boolean callable defined escaped even false filter float integer iterable lower mapping none number odd sequence string
test true undefined upper nope
""".split()

TESTS_OF_TWO = "divisibleby eq ge gt in le lt ne equalto sameas".split()

OPERATORS = "+ - * / // % ~ == < <= in and".split()

METHODS = """
capitalize() casefold() center(9) center(10,'*') center(4,'**') count('a') count('') count('b',1) count('b',0,-1)
encode() endswith('b') endswith(('x','b'),1) endswith('') expandtabs() expandtabs(3) find('b') find('b',-2)
find('',9) format() format(1) format('x',2) format(a=3) index('B') isalnum() isalpha() isascii() isdecimal() isdigit()
isidentifier() islower() isnumeric() isprintable() isspace() istitle() isupper() join(['1','2']) join([1]) ljust(6)
ljust(6,'é') lower() lstrip() lstrip('aé') partition('b') partition('') removeprefix('a') removesuffix('b')
replace('b','<') replace('','.') replace('b','x',0) rfind('b') rindex('b') rjust(7) rjust(7,'0') rpartition('b') rsplit()
rsplit(none,1) rsplit('b',1) rstrip() split() split('b') split('') split(none,1) splitlines() splitlines(true)
startswith('a') startswith('a',1) startswith('',99) strip() strip('ab') swapcase() title() translate({97:'x',98:none})
translate({97:233}) upper() zfill(8) zfill(0) zfill('a') nope() copy() items() get('a') get(1) get([]) keys() values() fromkeys([1,2])
count(1) index(2) index(9) append(1) update({}) pop() bit_length() bit_count() conjugate() as_integer_ratio()
is_integer() hex() unescape()
""".split()

TEXTS = [
    "''", "'ab'", "'aé B'", "'  x-b_z 12 '", "'-5'", "'Ab Cd'", "'ΑΣß ǅ'", "'\\tb\\tcc'", "'²Ⅷ五½'", "('<b>'|safe)", "'{}'", "'_a1'",
    "'ﬁ İ'", "'abcabc'", "[1,2,2]", "{'a':1,1:2}", "(1,2)", "range(3)", "5", "-2.5", "true", "18446744073709551616",
]  # fmt: skip

PERCENT = """
'%s %r %a' % ('é', 'é', 'é')
'%d %i %u' % (3, -4, 5.9)
'%5d|%-5d|%05d|%+d|% d' % (42, 42, 42, 42, 42)
'%x %X %#x %o %#o' % (255, 255, 255, 8, 8)
'%5.2f|%-8.3e|%g|%G|%#g' % (3.14159, 1234.5, 1e-7, 1e20, 1.0)
'%.3s|%5s|%-5s|%05s' % ('abcdef', 'a', 'b', 'c')
'%c%c' % ('x', 233)
'%%' % ()
'%%|%s' % 5
'%s'
'%s' % none
'%s' % [1, 2]
'%s' % {'a': 1}
'%(a)s %(b)05.1f' % {'a': 'x', 'b': 2}
'%(a)s' % {'b': 1}
'%(a)s' % [1]
'%s %s' % (1,)
'%s' % (1, 2)
'abc' % 1
'abc' % []
'abc' % {}
'abc' % ()
'abc' % missing
'%s' % missing
'%d' % 'x'
'%d' % none
'%x' % 1.5
'%*d|%-*d' % (5, 42, 5, 42)
'%.*f' % (2, 3.14159)
'%.3d' % 5
'%.0f %.0f' % (0.5, 1.5)
'%f %e' % ('inf' | float, 'nan' | float)
'%+f' % ('inf' | float)
'%010f' % -3.5
'%s' % (1, 2, 3)[0]
'%q' % 1
'%' % 1
'%(a' % {'a': 1}
'%(a(b))s' % {'a(b)': 1}
'%d' % 18446744073709551616
'%x' % 18446744073709551616
'%s' % 18446744073709551616
'%d' % true
'%ld %hd' % (1, 2)
'%s<' % '<' | safe
('<%s>' | safe) % '<'
('<%s>' | safe) % ('<b>' | safe)
('%s %r' | safe) % ('<', '<')
('%(a)s' | safe) % {'a': '<'}
('%d' | safe) % 5
'%s' % ('<' | safe)
'%5s' % ('é' | safe)
'%s' % (words, )
'%s %s' % words[:2]
'%i' % -0.5
'%#X' % 255
'%+.1e' % 12345.678
'%s' % true
'%r' % 'it\\'s'
'%-010d|' % 5
'%+ d' % 5
5 % '5'
[1] % 2
""".strip().split("\n")

BRACES = """
'{} {}'.format(1, 'a')
'{0}{1}{0}'.format('x', 'y')
'{a}{b[0]}{c.name}'.format(a=1, b=[2], c={'name': 3})
'{0[a]}{0[1]}'.format({'a': 1, 1: 2})
'{{}}{{{}}}'.format(5)
'{!r} {!s} {!a}'.format('é', 'é', 'é')
'{:>5}|{:<5}|{:^5}|{:*^6}|{:é<3}'.format(1, 2, 3, 'x', 'y')
'{:5}|{:05}|{:+}|{: }|{:x}|{:#x}|{:b}|{:o}|{:c}'.format(42, 42, 42, 42, 255, 255, 5, 8, 233)
'{:,}|{:_}|{:_x}|{:010,}|{:,.2f}'.format(1234567, 1234567, 1048576, 1234, 12345.678)
'{:.2f}|{:8.3e}|{:g}|{:%}|{:.1%}|{:G}|{:n}'.format(3.14159, 1234.5, 1e-7, 0.25, 0.125, 1e-10, 5)
'{}|{:5}|{:.3}|{:.10}|{:10.4}'.format(2.5, 2.5, 1234.0, 3.0, 100000.0)
'{:.3}|{:.3}|{:.1}'.format(100.0, 99.95, 0.05)
'{:s}|{:.2}|{:5.1}|{:05}'.format('abc', 'abc', 'abc', 'abc')
'{:{}}|{:{w}.{p}f}'.format('a', 5, 3.14159, w=8, p=2)
'{} {1}'.format(1, 2)
'{1} {}'.format(1, 2)
'{2}'.format(1)
'{a}'.format(1)
'{'.format(1)
'}'.format(1)
'{!x}'.format(1)
'{:d}'.format('a')
'{:d}'.format(1.5)
'{:s}'.format(1)
'{:=+8}|{:=08}'.format(-5, -5)
'{:=5}'.format('a')
'{:,}'.format('a')
'{:.2}'.format(5)
'{}{}'.format(none, true)
'{:5}'.format(true)
'{:5}'.format(none)
'{:d}'.format(true)
'{}'.format(missing)
'{:5}'.format(missing)
'{}'.format([1, 'a'])
'{:5}'.format([1])
'{a}'.format_map({'a': 1})
'{a}'.format_map({'b': 1})
'{}'.format_map([1])
'{0.name}'.format(deep)
'{0.a}{0.b}'.format(deep)
'{0.__class__}'.format(1)
'{0[__class__]}'.format({})
'{x.y}'.format(x={'y': 2})
'{0[-1]}'.format({'-1': 7})
'{0[5]}|'.format([1])
('<{}>' | safe).format('<')
('<{}>' | safe).format('<b>' | safe)
('<{:5}>' | safe).format('<')
('<{:5}>' | safe).format('<b>' | safe)
('{a}' | safe).format(a='&')
('{a}' | safe).format_map({'a': '&'})
'{}'.format('<b>' | safe)
'{:>6}'.format('<b>' | safe)
'{:}'.format(1)
'{::>3}'.format(1)
'{:e}|{:E}|{:.0f}|{:#.0f}'.format(0.0, 12.5, 2.5, 2.5)
'{:+.2f}|{:+}|{:-}'.format(1.0, -1, 5)
'{:f}|{:F}'.format('in' ~ words[:0] | join ~ 'f' | float, ('na' ~ 'n') | float)
'{:08.2f}|{:<08.2f}|{:^+9.2f}'.format(-3.14159, -3.14159, 3.14159)
'{}'.format(18446744073709551616)
'{:,}|{:e}|{:x}'.format(18446744073709551616, 18446744073709551616, 18446744073709551616)
'{:1000001}'.format(1) | length
'{:020,}|{:,}|{:_b}'.format(1234567.5, 0, 1023)
'a{b'.format(b=1)
'{0!r:>6}'.format('a')
'{[0]}'.format([4])
'{.x}'.format({'x': 4})
""".strip().split("\n")

OTHERS = r"""
18446744073709551616, -9223372036854775809, [18446744073709551616]
18446744073709551616 + 1, 18446744073709551615 * 2, 2 ** 64, 2 ** 100 - 1, 9223372036854775807 + 1
18446744073709551616 // 10, -18446744073709551616 % 7, -(2 ** 63), - 18446744073709551616
18446744073709551616 == 18446744073709551616.0, 18446744073709551616 > 1e19, 2 ** 64 < 2 ** 65, 2 ** 63 > 9223372036854775807
18446744073709551616 is number, 18446744073709551616 is integer, 18446744073709551616 is odd
'18446744073709551616' | int, 1e20 | int, '0x1F' | int(base=16), 'z' | int(0, 36), '0b11' | int(0, 0), '077' | int(9, 0)
18446744073709551616 | tojson, {18446744073709551616: 1} | tojson, 18446744073709551616 | string | length
0x1F, 0o17, 0b101, 0XfF, 1_000
{1: 'a', 'b': 2, none: 3, 2.5: 4, true: 5, (1, 2): 6}
{1: 'a', 1.0: 'b', true: 'c'}, {0: 1}[false], {(1, 2): 3}[1, 2], {(1, 2): 3}[(1, 2)]
{[1]: 2}
{{}: 2}
{(1, [2]): 2}
{1: 2}.get(1), {1: 2}[1], {1: 2}['1'] is defined, 1 in {1: 2}, '1' in {1: 2}, {none: 1}[none]
{1: 2, none: 3, true: 4, 2.5: 5} | tojson, {2: 1, 1: 2} | tojson(sort_keys=true), {'b': 1, 'a': 2} | tojson(indent=0)
{1: 2, 'a': 3} | tojson(sort_keys=true)
{(1, 2): 3} | tojson
{1: 2} | dictsort, {2: 'b', 1: 'a'} | dictsort(by='value'), {1: 2} | items | list, {1: 2} | list, {1: 2, 'a': 3} | length
{1: 2, 'a': 3} | dictsort
{1: {2: 3}} == {1.0: {2: 3}}, {1: 2} == {1: 2, 3: 4}
dict([(1, 2), ('a', 3)]), dict({1: 2}, a=3), dict(**{'a': 1})
dict([1])
namespace({'a': 1}, b=2).a, namespace(a=1)
range(3), range(1, 7, 2), range(5)[1:3], range(10)[::-2], range(3) | length, range(4)[-1], 2 in range(3)
range(3) == range(3), range(0) == range(0), range(3).start, range(3).stop, range(9, 3).step, range(3).index(2)
range(missing)
deep.items(), deep.keys(), {}.values()
deep.keys() == deep.keys(), deep.items() == deep.items(), {1: 2}.keys() == {1: 3}.keys()
deep.keys()[0] is defined
'a' + ('<b>' | safe) + '<', ('<' | safe) * 2, 2 * ('<' | safe), ('<' | safe)[0] is escaped, ('<b' | safe)[1:] is escaped
('<' | safe) + 1
('<' | safe) + none
('<' | safe) ~ '<', (('<' | safe) ~ '<') is escaped, ['<' | safe], ('<' | safe) == '<', ('<' | safe) in '<<'
('<B> ' | safe).lower() + '<', ('<' | safe).join(['<', '&' | safe, 1]), '&'.join(['<' | safe]) is escaped
('a,b' | safe).split(',')[0] is escaped, ('a,b' | safe).partition(',')[1] is escaped, ('ab' | safe).replace('a', '<')
('<b>&lt;x</b>  y <!-- c --> z' | striptags), ('<' | safe) | striptags, '<unclosed' | striptags, 'a&amp;b&#39;&#x41;' | striptags
'<' | e | e, '<' | forceescape, ('<' | safe) | forceescape, ('<' | e) is escaped, ('<' | safe) | upper is escaped
('<' | safe) | title is escaped, ('<' | safe) | trim is escaped, ('<' | safe) | replace('<', 'x') is escaped, ('<\n<' | safe) | indent is escaped
('<%s' | safe) | format('<'), ('<' | safe) | center(4) is escaped, ('<' | safe) | string is escaped, ('<' | safe) | list, ('ab' | safe) | first is escaped
('<a b' | safe) | truncate(3, true, '<', 0), ('<' | safe) | default('x') is escaped, ('<' | safe) | tojson, ('<' | safe) | reverse is escaped
people | groupby('age', default=0), people | groupby('name') | map(attribute='list') | map('length') | list
(people | groupby('name'))[0].grouper, (people | groupby('name') | first).list, (people | groupby('name') | first)[1] | length
['b', 'B', 'a'] | map('lower') | list | unique | list, [{'c': 'X'}, {'c': 'x'}] | groupby('c') | map(attribute='grouper') | list
[{'c': 'X'}, {'c': 'x'}] | groupby('c', case_sensitive=true) | map('first') | list
[{'a': 1, 'b': 2}, {'a': 1, 'b': 1}, {'a': 0, 'b': 3}] | sort(attribute='a,b') | map(attribute='b') | list, [{'a': {'b': 2}}, {'a': {'b': 1}}] | sort(attribute='a.b')
[{}, {}] | sort, [none, none] | sort
[none, 1] | sort
[1, 2, 3, 4, 5, 6, 7] | slice(3) | list, [1, 2] | slice(3, 'x') | list, [] | slice(2) | list
[1] | slice(0) | list
'hello big world' | truncate(9), 'hello big world' | truncate(11, true), 'hello' | truncate(3), 'hello big world' | truncate(9, end='', leeway=0)
'x' | truncate(1)
'the quick brown fox' | wordwrap(10), 'aaaaaaaaaa bb' | wordwrap(4), '  a  b\n\nc' | wordwrap(3), 'abc' | wordwrap(1), 'a b' | wordwrap(2, wrapstring='|')
'a-b c' | wordwrap(3, break_on_hyphens=false)
'a_b é-1 ½' | wordcount, '' | wordcount, none | wordcount
'a b/c?é&=' | urlencode, {'a b': '/', 'c': none} | urlencode, [('x', 1), ('y', 'é ')] | urlencode, 5 | urlencode
{'class': 'a<', 'id': none, 'x': missing, 'n': 1} | xmlattr, {'a b': 1} | xmlattr
1 | filesizeformat, 0 | filesizeformat, 999 | filesizeformat, 1000 | filesizeformat, 1e6 | filesizeformat, 1024 | filesizeformat(true), 1e30 | filesizeformat, '5000' | filesizeformat
{'b': 1, 'a': {'d': 1, 'c': 2}} | pprint, 'x' | pprint, [3, 'a'] | pprint, 2.5 | pprint
deep | attr('items') is callable, deep | attr('a') is defined, 'x' | attr('upper') is callable, 5 | attr('real'), missing is defined
missing | attr('x')
2.675 | round(2), 2.5 | round, -2.5 | round, 1234 | round(-2), 1250 | round(-2), 1350.5 | round(-2), 1e22 | round, 2.345 | round(20), 5 | round(1, 'ceil'), 1.21 | round(1, 'ceil'), 123.4 | round(-1, 'floor')
-0.4 | round, 0.5 | round(0, 'ceil'), -0.5 | round(0, 'ceil'), 18446744073709551616 | round, 'x' | round
5.0 is odd, 4.0 is even, 5.0 is divisibleby 2.5, true is odd, -3 is odd, 3 is divisibleby(num=3)
'x' is odd
5 is divisibleby 0
'nope' is filter, 'upper' is filter, 'random' is filter, 'defined' is test, 'nope' is test, 5 is filter
words is sameas words, [1] is sameas [1], none is sameas none, 1 is sameas true, words is sameas deep
x is nope if false else 1
1 if true else (2 | nope)
'a'.upper is callable, deep.items is callable, missing is callable, words.nope is callable
(5).real, (5).imag, (2.5).real, true.real, (5).numerator, 2.5.denominator is defined
(3).bit_length(), (2.5).is_integer(), (4.0).is_integer(), (0.75).as_integer_ratio(), (1.5).hex(), (255).bit_count()
words.copy(), deep.copy() == deep, dict.fromkeys is defined, {}.fromkeys('ab', 1)
'abc' | map('upper') | list, 'abc' | batch(2) | list, deep | map('upper') | list
words | map(attribute='x') | list, words | map('nope') is defined
words | select('nope') | list
words | map('format', 1) | list, ['%s', 'a%s'] | map('format', 1) | list, ['a'] | map('replace', 'a', 'b') | list
words | map('upper', 1) | list
[1, 'a', 2.5] | select('number') | list, [1, none] | reject('none') | list, [0, '', 1] | select | list, people | selectattr('name', 'eq', 'Ann') | list
people | map(attribute='name', default='x') | list, [[1, 2], [3]] | map('first') | list, [[1, 2], [3]] | map(attribute=0) | list, [{'a': [5]}] | map(attribute='a.0') | list
people | selectattr('age', 'nope') | list
words | join('-') | upper | replace('A', 'x') | list | first
[words | length, words | count][0], (words)[0], {'a': words}.a[0]
"a" if 1 else "b" if 2 else "c", 1 if 0, (1 if 0) is defined
1 < 2 == 2 != 3 >= 3, 1 in [1] == true, not 1 in [2], 1 not in [1], not not 1
2 ** 3 ** 2, -2 ** 2, (-2) ** 2, 2 ** -1, 2 ** 0.5, 7 // -2, -7 // 2, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2, 1 / 3
0 ** -1
2 ** 1000
5 / 0
5 // 0.0
5 % 0
(-8) ** 0.5
true + true, true * 3, -true, +true, true / 2, 'a' * true, [1] * 2, 2 * (1,), 'a' * -1
'a' + 1
1 + 'a'
none + 1
[1] + (1,)
{} + {}
'a' - 'b'
'a' < 1
none < 1
[1] < [1, 0], (1, 2) < (1, 3), 'a' < 'b' < 'c', [] < [0], true < 2
{} < {}
1.5 in [1.5], 'a' in 'abc', 'a' in {'a': 1}, missing in [1], none in [none], 5 in '5'
1 in 5
1 in missing
1 in none
'x' ~ none ~ true ~ 1.0 ~ [1] ~ missing ~ {'a': 1}
[1, 2, 3][5] is defined, [1, 2][-1], [1, 2]['x'] is defined, 'abc'[-1], 'abc'[5] is defined, {'a': 1}[5] is defined
missing[0]
missing.x
none.x is defined, none[0] is defined, (5)[0] is defined, true.x is defined
[1, 2, 3][1.0] is defined, 'abc'[true], [1, 2][false], [1, 2, 3][none:2], [1, 2, 3][18446744073709551616] is defined
'abc'[1:], 'abc'[::-1], 'abc'[-2:], [1, 2, 3][::2], (1, 2, 3)[1:], 'é🙂x'[1], [1, 2, 3][5:], [1, 2, 3][-9:2], 'abc'[:-1:2]
[1, 2][::0]
words['a':]
deep.items is defined, deep['items'], deep.get is callable, deep['get'] is callable, {'get': 1}.get is callable
'a\tb\\n\'"' , 'a"b', "it's", '\u00e9\x41\n', '\101\60', '\é\q', 'a' 'b' "c"
'\N{BULLET}'
words | first | upper, -1 | abs, (-1) | abs, 1 + 2 | string, 'a' ~ 'b' | upper, not true | string, 2 * 3 | float
words | length > 2, words | length is even, (words | first) in 'abc', 'a' is string and 1 is number
cycler('a', 'b').next(), cycler(1, 2).current, joiner()(), joiner is callable, joiner('|')
cycler()
loop is defined, self is defined, caller is defined, varargs is defined, super is defined, _ is defined
lipsum is callable, range is callable, dict is callable, cycler is callable, namespace is callable
café is defined, [1, 2, 3,], (1, 2,), {'a': 1,}, [1, [2, [3]]], ((1, 2), 3)
strftime_now('%Y-%m-%d'), strftime_now('%H:%M')
strftime_now(5)
1.5e3, 1e5, 1E-2, 1_0.5, 1e999, 0.1 + 0.2, 1e16, 123456789012345680.0, 1e-5, 0.0001, -0.0
1.
.5
007
1a
'a'.b is defined, 'a'.0, [5].0, {'a': {'b': 1}}.a.b, words.0
'{}' % 1
'a' if 'b' is not string else 'c', 1 is not none, missing is not defined, 1 is not odd
1 is odd is true
upper('a')
'a' | upper()
'a' | upper | lower | title
'a' | 'b'
5 | default('x', boolean=true), 0 | default('x', true), '' | d('x', true), none | d('x')
'x' | default
'x' | replace('x')
'x' | replace
'x' | replace('x', 'y', 'z')
'aXbX' | replace('X', none), 5 | replace(5, 6), none | replace('N', 'M'), [1] | replace('1', '2')
'abc' | replace(old='a', new='b'), 'abc'.replace('a', 'b', 1), 'aaa' | replace('a', 'b', count=2)
'abc'.replace(old='a', new='b')
'abc'.strip(chars='a')
'a b c'.split(sep=' ', maxsplit=1), 'a\nb'.splitlines(keepends=true), 'a\tb'.expandtabs(tabsize=2)
'abc'.maketrans('ab', 'xy'), 'abc'.translate('abc'.maketrans('ab', 'xy', 'c')), ''.maketrans({'a': 'b', 98: none})
words | sort(case_sensitive=true, reverse=true), words | max, words | min(case_sensitive=true), [] | min is defined, {'b': 1, 'a': 2} | max
[1, 'a'] | max
'x' | center(5) ~ '|', 'ab' | center(5) ~ '|', 'abc'.center(6) ~ '|', 'ab'.center(5) ~ '|', 'x'.ljust(3) ~ '|', 'x'.rjust(3)
'x' | indent(2, first=true), 'a\nb' | indent(width=1), 'a\n\nb' | indent(1, blank=true), '' | indent, 'a\n' | indent(1)
5 | indent
none | indent
missing | indent
""".strip().split("\n")

TEMPLATES = [
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, a=3) }}{{ m() }}",
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs|dictsort }}{% endmacro %}{{ m(1) }}{{ m(1, 3, 4) }}{{ m(c=5, a=1) }}{{ m(*[1, 2, 3], **{'x': 1}) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}{{ m(*'x') }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1, 2]) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(**{'b': 2}) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(**{1: 2}) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(**missing) }}",
    "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1], b=2) }}{{ m(1, *[2]) }}{{ m(a=1, **{'b': 2}) }}",
    "{{ dict(*[{'a': 1}], **{'b': 2}) }}{{ range(*[1, 5, 2])|list }}{{ 'abc'.replace(*['a', 'x']) }}{{ 'a'|replace(*['a', 'b']) }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ number }}{% endcall %}",
    "{% macro m(n) %}{% for i in range(n) %}[{{ caller(i, 'x') }}]{% endfor %}{% endmacro %}{% call(i, s) m(3) %}{{ i }}{{ s }}{% endcall %}",
    "{% macro m() %}{{ caller is defined }}{{ caller('a') if caller }}{% endmacro %}{{ m() }}{% call(x) m() %}{{ x }}{% endcall %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
    "{% macro m(caller=1) %}{{ caller }}{% endmacro %}{{ m(1) }}{{ m(caller=2) }}{% call m() %}{% endcall %}",
    "{% macro m() %}{{ kwargs }}{% endmacro %}{% call m(a=1) %}y{% endcall %}",
    "{% macro outer() %}({{ caller() }}){% endmacro %}{% macro inner() %}<{{ caller() }}>{% endmacro %}{% call outer() %}{% call inner() %}x{% endcall %}{% endcall %}",
    "{% set x = 1 %}{% macro m() %}{{ caller() }}{% endmacro %}{% for i in [1, 2] %}{% call m() %}{{ i }}{{ x }}{{ loop.index }}{% endcall %}{% endfor %}",
    "{% call(x) range(3) %}{% endcall %}",
    "{% call 5 %}{% endcall %}",
    "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}",
    "{% macro a() %}{% macro b(x) %}[{{ x }}]{% endmacro %}{{ b(1) }}{{ b(2) }}{% endmacro %}{{ a() }}",
    "{% with y = 3 %}{% macro m() %}{{ y }}{% endmacro %}{{ m() }}{% endwith %}",
    "{% macro m(a, b=1) %}{{ varargs }}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_varargs }}{{ m.catch_kwargs }}{{ m.caller }}{{ m }}",
    "{% macro m(x=[]) %}{{ x }}{% endmacro %}{{ m() }}{{ m([1]) }}{{ m(x='a')|upper }}",
    "{% for n in tree recursive %}{{ n.name }}{{ loop.depth }}{{ loop.depth0 }}{{ loop.index }}{% if n.kids %}({{ loop(n.kids) }}){% endif %}{% endfor %}",
    "{% for n in tree recursive %}{{ n.name }}{% for k in n.kids %}{{ k.name }}{{ loop.depth }}{% endfor %}{{ loop(n.kids)|upper }}{% else %}-{% endfor %}",
    "{% for n in tree if n.name != 'b' recursive %}{{ n.name }}{{ loop(n.kids) if n.kids }}{% endfor %}",
    "{% for n in [1] %}{{ loop([2]) }}{% endfor %}",
    "{% for n in [[1]] recursive %}{{ loop(5) }}{% endfor %}",
    "{% for n in words %}{{ loop }}{{ loop|length }}{% endfor %}",
    "{% block a %}A{{ number }}{% endblock %}{% block b %}B{% endblock b %}{{ self.a() }}{{ self.b()|upper }}",
    "{% set x = 1 %}{% block a %}{{ x }}{% set x = 2 %}{{ x }}{% endblock %}{{ x }}",
    "{% for i in [1, 2] %}{% block a %}{{ i is defined }}{% endblock %}{% endfor %}",
    "{% for i in [1, 2] %}{% block a scoped %}{{ i }}{% endblock %}{% endfor %}",
    "{% block a %}{% block b %}x{% endblock %}y{% endblock %}{{ self.b() }}",
    "{% block a %}{% endblock %}{% block a %}{% endblock %}",
    "{% block a required %}{% endblock %}",
    "{% block a %}{% endblock c %}",
    "{{ self.nope() }}",
    "{% if false %}{% include 'x' %}{% endif %}a",
    "{% include 'x' %}",
    "{% include 'x' ignore missing %}",
    "{% if false %}{% import 'x' as y %}{% endif %}a",
    "{% if false %}{% from 'x' import y %}{% endif %}a",
    "{% from 'x' import y %}a",
    "{% extends 'x' %}a",
    "{% autoescape false %}{{ '<' }}{% endautoescape %}",
    "{% autoescape true %}{{ '<' }}{% endautoescape %}",
    "{% print 1, 'a' %}{% print words %}{% print 1 + 1 %}",
    "{% do words.append(1) %}",
    "{% trans %}x{% endtrans %}",
    "{% debug %}",
    "{% nope %}",
    "{% if missing is nope %}x{% endif %}",
    "{% if false %}{{ 1|nope }}{{ 1 is nope }}{% endif %}a",
    "{% if not words %}{{ words|nope(1, a=2) }}{% endif %}a",
    "{{ 1|nope if false else 2 }}",
    "{% filter upper %}a{% filter lower %}B{% endfilter %}{% endfilter %}{% filter replace('a', 'b')|upper %}a{% endfilter %}",
    "{% filter nope %}x{% endfilter %}",
    "{% set j = joiner('; ') %}{% for w in words %}{{ j() }}{{ w }}{% endfor %}{% set k = joiner() %}{{ k() }}{{ k() }}{{ k() }}",
    "{% set c = cycler('a', 'b', 'c') %}{% for w in range(5) %}{{ c.next() }}{% endfor %}{{ c.current }}{{ c.reset() }}{{ c.current }}{{ c.next() }}",
    "{% set ns = namespace(a=1) %}{% set ns.b = {1: 2} %}{{ ns.b[1] }}{{ ns }}{{ ns.c is defined }}{{ ns['a'] }}",
    "{% set ns = namespace() %}{% set ns.x, ns.y = 1, 2 %}{{ ns.x }}{{ ns.y }}",
    "{% set ns = namespace(a=1) %}{% macro m() %}{% set ns.a = ns.a + 1 %}{{ ns.a }}{% endmacro %}{{ m() }}{{ m() }}{{ ns.a }}",
    "{% set a, (b, c) = 1, (2, 3) %}{{ a }}{{ b }}{{ c }}{% set d = 1, %}{{ d }}",
    "{% set x | upper %}a{{ number }}{% endset %}{{ x }}{% set y %}<{% endset %}{{ y is escaped }}{{ y|e }}",
    "{% for k, v in {1: 'a', none: 'b'}.items() %}{{ k }}{{ v }}{% endfor %}{% for k in {2: 1} %}{{ k + 1 }}{% endfor %}",
    "{% for g, items in people|groupby('age', default=0) %}{{ g }}:{{ items|map(attribute='name')|join(',') }};{% endfor %}",
    "{% for row in range(7)|batch(3, '-') %}{{ row|join(',') }};{% endfor %}{% for col in range(7)|slice(3) %}{{ col }};{% endfor %}",
    "{% for i in range(4) %}{{ loop.cycle('a', 'b') }}{{ loop.changed(i // 2) }}{{ loop.previtem|default('-') }}{{ loop.nextitem|default('-') }}{% endfor %}",
    "{% for i in words %}{% if loop.index > 2 %}{% break %}{% endif %}{{ i }}{% else %}none{% endfor %}{% for i in [] %}{% else %}empty{% endfor %}",
    "{% for a, b in [(1, 2)] %}{% for c in [3] %}{{ a }}{{ b }}{{ c }}{{ loop.length }}{% endfor %}{{ loop.length }}{% endfor %}",
    "{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z is defined }}{% with a = 1, b = a %}{{ b is defined }}{% endwith %}",
    "{% generation %}a{{ number }}{% endgeneration %}{% for i in [1] %}{% generation %}{{ i }}{% endgeneration %}{% endfor %}",
    "{% raw %}{{ x }}{% endraw %}{#- c -#} {{- 1 -}} {%- if true -%} x {%- endif +%}\ny",
    "{{ big.n }}{{ big.n|tojson }}{{ big.n + 1 }}{{ big.neg }}{{ big|tojson }}{{ big.n == big.n2 }}{{ big.n|string|length }}{{ big.n < big.n2 }}",
    "{{ big.huge }}{{ big.huge|tojson }}{{ big.huge > big.n }}{{ big.huge == big.huge }}{{ [big.huge, 1, big.neg]|sort }}{{ '%d' % big.huge }}{{ big.huge|abs }}{{ -big.huge }}",
    "{{ big.n // 3 }} {{ big.n % 1000 }} {{ big.n * 2 }} {{ big.neg // 7 }} {{ big.n * 1.0 }} {{ big.n is even }} {{ big.n - big.n2 }}",
    "{{ x(1)(2) }}",
    "{{ (words|first|upper)(1) }}",
    "{{ words|map('upper')|list|first() }}{{ words|first|attr('upper')() }}",
    "{{ {'a': 1}|attr('items')()|list }}",
]

VARIABLES = {
    "tree": [{"name": "a", "kids": [{"name": "b", "kids": []}, {"name": "c"}]}, {"name": "d"}],
    "big": {"n": 2**64, "neg": -(2**65) - 1, "huge": 10**60 + 7, "n2": 2**64 + 1},
}  # fmt: skip


def shown(expression: str) -> str:
    """A template that writes the expression's value, whatever its type, and whether it is safe."""
    return (
        f"{{% set r = {expression} %}}{{{{ r if r is string or r is number or r is mapping or r is none else r|list "
        "if r is iterable else r }}|{{ r is escaped }}{{ r is sequence }}{{ r is defined }}"
    )


def has_address(text: str | None) -> bool:
    """Python's text of an object with an address, which differs in every run."""
    return text is not None and "object " in text.lower()


def named() -> list[str]:
    """The templates that were written one by one."""
    return [f"{{{{ {e} }}}}" for e in PERCENT + BRACES + OTHERS] + TEMPLATES


def made_by_rule() -> list[str]:
    """Every filter, test, method and operator with values of every type."""
    pairs = list(itertools.product(FEW, FEW))
    made = [shown(f"({v})|{f}") for f in FILTERS for v in VALUES]
    made += [f"{{{{ ({v}) is {t} }}}}" for t in TESTS for v in VALUES]
    made += [f"{{{{ ({a}) is {t}({b}) }}}}" for t in TESTS_OF_TWO for a, b in pairs]
    made += [shown(f"({t}).{m}") for m in METHODS for t in TEXTS]
    made += [shown(f"({a}) {o} ({b})") for o in OPERATORS for a, b in pairs]
    made += [f"{{{{ ({v}) }}}}" for v in VALUES] + [f"{{{{ ({v})|tojson }}}}" for v in VALUES]
    made += [f"{{% for x in {v} %}}[{{{{ x }}}}]{{% endfor %}}" for v in VALUES]
    made += [
        shown(f"({v})[{i}]") for v in VALUES for i in ["0", "-1", "'a'", "none", "1:", "true", "2.0", "::-1"]
    ]
    made += [shown(f"{s}({v})") for s in "+-" for v in VALUES] + [f"{{{{ not ({v}) }}}}" for v in VALUES]
    return made
