"""Each check must find the fault seeded for it, and nothing in a tree without one."""

import pathlib
import tempfile
import unittest

import check_clones
import check_cycles
import check_fields
import check_figures
import check_layers
import check_prose
import check_sizes
import measure
import passed

PAGES = {
    "README.md": "# x\n[changes](CHANGELOG.md)\n",
    "ARCHITECTURE.md": "",
    "CONTRIBUTING.md": "",
    "CHANGELOG.md": "## Unreleased\n",
}
GOOD = {
    "heddle/base/error.h": "#include <string>\n",
    "heddle/tile/map.h": "inline float twice(float x) { return 2 * x; }\n",
    "heddle/ir/op.h": '#include "heddle/base/error.h"\n',
    "heddle/ops/add/add.h": "struct AddArgs {};\n",
    "heddle/ops/add/add.cpp": '#include "heddle/ops/add/add.h"\n#include "heddle/ir/op.h"\n#include <map>\n',
    "heddle/ops/add/add.cuh": '#include "heddle/ops/add/add.h"\n#include "heddle/tile/map.h"\n',
    "heddle/schedule/schedule.h": '#include "heddle/ir/op.h"\n',
    "heddle/schedule/wave.h": "",
    "heddle/schedule/wave.cpp": '#include "heddle/schedule/wave.h"\n',
    "heddle/model/llama.cpp": '#include "heddle/ops/add/add.h"\n',
    "heddle/session/answer.h": '#include "heddle/ir/op.h"\n',
    "apps/heddle/main.cpp": '#include "heddle/session/answer.h"\n',
}
PYTHON = {
    "python/heddle/__init__.py": "",
    "python/heddle/check.py": "import heddle\nfrom heddle.commands import named\nheddle.Op\n",
    "python/heddle/commands/__init__.py": "",
    "python/heddle/commands/named.py": "from heddle.own.op import Op\n",
    "python/heddle/errors.py": "",
    "python/heddle/ops/__init__.py": "from heddle import _heddle\nfrom heddle.errors import Error\n",
    "python/heddle/own/__init__.py": "",
    "python/heddle/own/op.py": "from heddle import ops\n",
    "python/heddle/torch/__init__.py": "from heddle.torch import own\n",
    "python/heddle/torch/own.py": "from heddle.own import op\n",
}


CUTE = "#include <cute/tensor.hpp>\n"
LONG_FUNCTION = "void Big::long_one(int a) {\n" + "  x();\n" * 90 + "}\n"


class CheckTest(unittest.TestCase):
    def found(self, check, **seeded):
        """The output of the check for the good tree with these files added."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**PAGES, **GOOD, **seeded}.items():
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return "\n".join(check.violations(root)[0])

    def test_accepts_the_good_tree(self):
        for check in (
            check_layers,
            check_sizes,
            check_clones,
            check_cycles,
            check_fields,
            check_figures,
            check_prose,
        ):
            with self.subTest(check.__name__):
                self.assertEqual(self.found(check), "")

    def test_layers(self):
        faults = {
            "includes layer 5": ("heddle/ir/a.h", '#include "heddle/engine/e.h"\n'),
            "layer 1 includes layer 1": ("heddle/ir/e.h", '#include "heddle/tile/map.h"\n'),
            "includes layer 1": ("heddle/tile/a.h", '#include "heddle/ir/op.h"\n'),
            "only model/, tests": ("heddle/engine/a.cpp", '#include "heddle/ops/add/add.h"\n'),
            "only model/": ("heddle/ops/mul/mul.cpp", '#include "heddle/ops/add/add.h"\n'),
            "through their registry": ("apps/heddle/a.cpp", '#include "heddle/backend/cuda/d.h"\n'),
            "includes layer 8": ("heddle/session/a.h", '#include "apps/heddle/support/flags.h"\n'),
            "include heddle/base/json.h, which wraps it": (
                "tests/a_test.cpp",
                "#include <nlohmann/json.hpp>\n",
            ),
            "__shfl_xor_sync: a body asks Team": (
                "heddle/ops/add/add.sm80.cuh",
                "__shfl_xor_sync(~0u, x, 1);\n",
            ),
            "asm stands only in kit/arch": (
                "heddle/ops/add/add_kernel.sm90.cuh",
                '#pragma once\nvoid f() { asm volatile(""); }\n',
            ),
            "includes what it uses": (
                "heddle/ops/add/add_kernel.sm80.cuh",
                "template <class Config, class Frame>\nstruct ChainKernel {};\n",
            ),
            "the plan reads the budget": (
                "heddle/ops/add/add_kernel.sm90.cuh",
                "#pragma once\nRing ring{chip(), chip() + kAfterRing};\n",
            ),
            "kConsumers: a body asks Team": ("heddle/ops/add/add.sm80.cuh", "i += kConsumers;\n"),
            "sibling cuda": ("heddle/backend/cpu/a.cpp", '#include "heddle/backend/cuda/d.h"\n'),
            "not below it": (
                "heddle/backend/cuda/runtime/a.h",
                '#include "heddle/backend/cuda/compiler/jit.h"\n',
            ),
            "a policy includes": ("heddle/schedule/dag.cpp", '#include "heddle/schedule/wave.h"\n'),
            "no layer that can": ("heddle/ir/b.cpp", '#include "tests/harness.h"\n'),
            "has no layer": ("heddle/misc/a.cpp", '#include "heddle/base/error.h"\n'),
            "from the repository root": ("heddle/ir/c.cpp", '#include "op.h"\n'),
            "only backends include": ("heddle/engine/c.cpp", '#include "op_entries.inc"\n'),
            "stand in quotes": ("heddle/ir/d.cpp", "#include <heddle/ir/op.h>\n"),
            "no CUDA type": ("heddle/engine/b.cpp", "#include <cuda.h>\n"),
            "__CUDA_ARCH__": ("heddle/tile/b.h", "#if __CUDA_ARCH__ >= 900\n#endif\n"),
            "heddle/tile/c.h:1 -> <cmath>": ("heddle/tile/c.h", "#include <cmath>\n"),
            "error.h:1 -> <string>": ("heddle/ops/mul/mul.cuh", '#include "heddle/base/error.h"\n'),
            "lambda in a requires": (
                "heddle/tile/d.h",
                "bool b() { return requires(int i) { f(i, [](int) {}); }; }\n",
            ),
            ".cu file": ("heddle/backend/cuda/a.cu", ""),
        }
        for message, (path, text) in faults.items():
            with self.subTest(path):
                self.assertIn(message, self.found(check_layers, **{path: text}))

    def test_layers_allow_what_is_meant(self):
        allowed = {
            "heddle/kit/arch/sm90.cuh": CUTE + "#if __CUDA_ARCH__ >= 900\n#endif\n",
            "heddle/ops/add/add_kernel.sm90.cuh": '#pragma once\nu32 x = chip() + kBudget.offset("x");\n',
            "heddle/ops/add/add.sm90.cuh": CUTE + '#include "heddle/ops/add/add.h"\n',
            "heddle/base/json.cpp": "#include <nlohmann/json.hpp>\n",
            "heddle/ops/add/add_twice.cpp": '#include "heddle/ops/add/add.h"\n',
            "heddle/ops/add/add_test.cpp": '#include "heddle/ops/add/add.h"\n#include <gtest/gtest.h>\n',
            "heddle/backend/cpu/bodies.cpp": '#include "op_entries.inc"\n',
            "heddle/tile/map_test.cpp": '#include <cmath>\n#include "heddle/tile/map.h"\n',
            "tests/harness_test.cpp": '#include "heddle/ops/add/add.h"\n#include "heddle/model/llama.h"\n',
        }
        self.assertEqual(self.found(check_layers, **allowed), "")

    def test_sizes(self):
        faults = {
            "heddle/ir/a.h: 301 lines": ("heddle/ir/a.h", "int x;\n" * 301),
            "heddle/ir/a.cpp: 601 lines": ("heddle/ir/a.cpp", "int x;\n" * 601),
            "heddle/ir/b.cpp:Big::long_one: 92 lines": ("heddle/ir/b.cpp", LONG_FUNCTION),
            "tools/a.py:slow: 91 lines": ("tools/a.py", "def slow():\n" + "    x()\n" * 90),
            "many: 8 parameters": ("heddle/ir/c.cpp", "void many(" + "int, " * 7 + "int) {}\n"),
            "longer than 60": ("heddle/ir/d.cpp", "void f() {\n" + "  x();\n" * 61 + "}\n"),
            "no longer needed": ("tools/size_exemptions.txt", "heddle/ir/op.h 700 it was long once\n"),
        }
        for message, (path, text) in faults.items():
            with self.subTest(path):
                self.assertIn(message, self.found(check_sizes, **{path: text}))

    def test_a_wide_header_is_found(self):
        many = {f"heddle/engine/a{i}.cpp": '#include "heddle/ir/wide.h"\n' for i in range(40)}
        found = self.found(check_sizes, **many, **{"heddle/ir/wide.h": "int x;\n" * 260})
        self.assertIn("heddle/ir/wide.h: 10400 lines x includers", found)

    def test_an_exemption_with_a_reason_holds_up_to_its_limit(self):
        long = {"heddle/ir/a.h": "int x;\n" * 310}
        for limit, message in ((320, ""), (305, "heddle/ir/a.h: 310 lines; the limit is 305")):
            exempt = {"tools/size_exemptions.txt": f"heddle/ir/a.h {limit} one table, read as a whole\n"}
            self.assertEqual(self.found(check_sizes, **long, **exempt), message)

    def test_tile_bodies_may_be_longer(self):
        text = "template <class B>\nvoid run(B& block) {\n" + "  x();\n" * 100 + "}\n"
        fillers = {"heddle/ir/f.cpp": "void f() {\n}\n" * 30}
        self.assertEqual(self.found(check_sizes, **{"heddle/ops/add/add.cuh": text}, **fillers), "")

    def test_clones(self):
        text = "".join(f"int value_{i} = {i};\n" for i in range(20))
        found = self.found(check_clones, **{"heddle/ir/a.cpp": text, "heddle/engine/a.cpp": text})
        self.assertIn("heddle/engine/a.cpp:1 = heddle/ir/a.cpp:1", found)

    def test_cycles(self):
        folders = {
            "heddle/ir/a.h": '#include "heddle/trace/t.h"\n',
            "heddle/trace/t.h": "",
            "heddle/trace/u.h": '#include "heddle/ir/op.h"\n',
        }
        self.assertIn("heddle/ir, heddle/trace", self.found(check_cycles, **folders))
        ring = {"heddle/ir/a.h": '#include "heddle/ir/b.h"\n', "heddle/ir/b.h": '#include "heddle/ir/a.h"\n'}
        self.assertIn("heddle/ir/a.h, heddle/ir/b.h", self.found(check_cycles, **ring))
        pair = {
            "heddle/ir/a.h": "",
            "heddle/ir/a.cpp": '#include "heddle/ir/b.h"\n',
            "heddle/ir/b.h": '#include "heddle/ir/a.h"\n',
        }
        self.assertIn("heddle/ir/a, heddle/ir/b", self.found(check_cycles, **pair))

    def test_python_layers(self):
        faults = {
            "heddle.torch.own: layer 4 imports layer 5": "def f():\n    from heddle.torch import own\n",
            "heddle.torch: layer 4 imports layer 5": "import heddle.torch\n",
            "heddle.torch.own: layer 4 imports": "import torch, heddle.torch.own as own\n",
            "heddle.commands.named: layer 4 imports": "from ..commands import named\n",
            "a.py:2: heddle: layer 4 imports layer 7": "import heddle.ops\nheddle.Error(heddle.ops.add)\n",
            "heddle: layer 4 imports layer 7": "from heddle import load\n",
            "heddle.check: layer 4 imports layer 8": '__import__("heddle.check")\n',
            "heddle.new has no layer": "from heddle import new\n",
        }
        for message, text in faults.items():
            with self.subTest(message):
                seeded = {**PYTHON, "python/heddle/new.py": "", "python/heddle/own/a.py": text}
                self.assertIn(message, self.found(check_layers, **seeded))
        seeded = {**PYTHON, "python/heddle/new.py": "from heddle import ops\n"}
        self.assertIn("give it one in tools/check_layers.py", self.found(check_layers, **seeded))

    def test_python_layers_allow_what_is_meant(self):
        text = """
import torch
import heddle.ops
from heddle import _heddle, errors
from heddle.ops import add
from heddle._heddle import function
from .op import Op
x = heddle.ops.add(torch.ops.heddle.check, Op.heddle.check)
"""
        self.assertEqual(self.found(check_layers, **PYTHON, **{"python/heddle/own/a.py": text}), "")
        self.assertEqual(self.found(check_cycles, **PYTHON, **{"python/heddle/own/a.py": text}), "")

    def test_python_cycles(self):
        modules = {
            "python/heddle/own/a.py": "from heddle.own import b\n",
            "python/heddle/own/b.py": "def f():\n    from heddle.own.a import g\n",
        }
        self.assertIn("heddle.own.a, heddle.own.b", self.found(check_cycles, **PYTHON, **modules))
        package = {
            "python/heddle/own/__init__.py": "from . import a\n",
            "python/heddle/own/a.py": "import heddle.own\n",
        }
        self.assertIn("heddle.own, heddle.own.a", self.found(check_cycles, **{**PYTHON, **package}))
        rooms = {
            "python/heddle/bench/__init__.py": "",
            "python/heddle/bench/timing.py": "",
            "python/heddle/bench/report.py": "from heddle.bench.suites import rows\n",
            "python/heddle/bench/suites/__init__.py": "",
            "python/heddle/bench/suites/rows.py": "from heddle.bench import timing\n",
        }
        self.assertIn("heddle.bench, heddle.bench.suites", self.found(check_cycles, **PYTHON, **rooms))
        rooms["python/heddle/bench/__main__.py"] = rooms.pop("python/heddle/bench/report.py")
        self.assertEqual(self.found(check_cycles, **PYTHON, **rooms), "")

    def test_fields(self):
        text = """
struct Size {
  int rows = 1, unread = 2;  // int comment;
  std::function<void(int, int)> unread_call = [](int a, int) { return a; };
  alignas(8) const char* unread_text = "a;b";
  bool (*unread_pointer)(int) = nullptr;
  template <class F>
  int area(F f) const { const int local = 2; return f(rows, local); }
  struct Inner { i64 unread_inner[4] = {}; };
  static constexpr int kMost = 3;
  int reserved = 0;
};
"""
        reader = "Size a{.unread = 1};\nvoid f(Size& a) { a.unread = 2; a.unread_inner = 3; g(a.rows); }\n"
        seeded = {"heddle/ir/a.h": text, "tests/a.cpp": reader}
        lines = self.found(check_fields, **seeded).split("\n")
        names = ["unread", "unread_call", "unread_text", "unread_pointer", "unread_inner"]
        self.assertEqual(sorted(line.split()[-1] for line in lines), sorted(names))
        self.assertIn("heddle/ir/a.h:3: nothing reads unread", lines)
        seeded["tests/b.cpp"] = "".join(f"int x{i} = a.{name};\n" for i, name in enumerate(names))
        self.assertEqual(self.found(check_fields, **seeded), "")

    def test_prose(self):
        self.assertIn("151 lines", self.found(check_prose, **{"README.md": "x\n" * 151}))
        self.assertIn("gone.md leads nowhere", self.found(check_prose, **{"README.md": "[a](gone.md)\n"}))
        path = "/".join(("", "home", "ada", "x.py"))
        self.assertIn("path of one machine", self.found(check_prose, **{"tools/a.py": f"open({path!r})\n"}))
        self.assertIn("Unreleased", self.found(check_prose, **{"CHANGELOG.md": "## 1.0\n"}))

    def test_figures(self):
        result = '{"rows": [{"work": "a", "value": 35.165, "ceiling": 34.2, "peers": {"torch": 114.1}}]}'

        def found(figure, heading="## Measured"):
            page = f"# x\n\n{heading}\n\n| what | ms |\n|---|---|\n| decode at 5 ms | {figure} |\n"
            tree = {"README.md": page.replace("decode at 5 ms", "decode"), "bench/results/b.json": result}
            return self.found(check_figures, **tree)

        link = '(bench/results/b.json "a{}")'
        for shown, field in (
            ("35", ""),
            ("35.17 ms", ""),
            ("34", " | ceiling"),
            ("114", " | peer"),
            ("0.0352", " | value / 1000"),
        ):
            self.assertEqual(found(f"[{shown}]{link.format(field)}"), "")
        for figure, message in (
            (f"[36]{link.format('')}", "the file says 35.165"),
            (f"[35.2]{link.format(' | peer')}", "the file says 114.1"),
            ('[35](bench/results/b.json "b")', "has 0 rows 'b'"),
            ('[35](bench/results/c.json "a")', "there is no bench/results/c.json"),
            (f"[1]{link.format(' | ratio')}", "cannot be compared"),
            (f"[1]{link.format(' | speed')}", "cannot be compared with speed"),
            (f"[1]{link.format(' | 1 + value')}", "'1 + value' is no field"),
            ("35", "'35' is no link to a result"),
            ("35 ms", "'35 ms' is no link to a result"),
        ):
            self.assertIn(message, found(figure))
        self.assertEqual(found("35 ms", "## Elsewhere"), "")

    def test_plain_comments(self):
        seeded = {
            "// Of a tile, the rows.\nint a;\n": '1: a comment begins with "Of"',
            "int a;  // of a tile\n": '1: a comment begins with "of"',
            "int a;\n// What a tile\n// reads.\nint b;\n": '2: a comment begins with "What"',
            "// Loads a panel\n// ahead of its wait.\n": '1: "ahead of" is not a place here; write: before',
            "// The header stands behind it.\n": "",
            "// Code made ahead of time. Look behind the page.\n": "",
            "// All rows of a tile,\n// of which one is live.\n": "",
            'const char* a = "// Of a tile";\nint b;  // bytes\n': "",
            "// A worker who waits.\n": '1: "worker who": who is a person; write: that',
            "// Why it waits.\n": '1: a comment begins with "Why"',
            "// How long it waits.\n": '1: a comment begins with "How"',
            "// Until a tile is done.\n": '1: a comment begins with "Until"',
            "// However it ends.\n": "",
        }
        for text, message in seeded.items():
            self.assertIn(message, self.found(check_prose, **{"heddle/ir/a.h": text}), text)
            self.assertEqual(message == "", self.found(check_prose, **{"heddle/ir/a.h": text}) == "", text)
        found = self.found(check_prose, **{"tools/a.py": '"""Whether it runs."""\nx = ["""Of it."""]\n'})
        self.assertEqual(found, 'tools/a.py:1: a comment begins with "Whether"; write a sentence, verb first')
        for path in ("python/heddle/a.py", "python/tests/a.py", "examples/a.py"):
            self.assertIn(
                f'{path}:1: a comment begins with "of"', self.found(check_prose, **{path: "x = 1  # of it\n"})
            )

    def test_plain_pages(self):
        seeded = {
            "# a\n\nWhat a tile\nreads.\n": '3: a paragraph begins with "What"',
            "a\n- b\n- Of a tile\n": '3: a paragraph begins with "Of"',
            "1. How it\n   runs\n": '1: a paragraph begins with "How"',
            "Loads it ahead\nof its wait.\n": '1: "ahead of" is not a place here; write: before',
            "The kernel who waits.\n": '1: "kernel who": who is a person; write: that',
            "# What a tile reads\n\nA tile\nof x, which stands behind it.\n": "",
            "| What | who |\n|---|---|\n| Of x | a |\n": "",
            "```sh\n# Of a tile\nOf a tile, behind x\n```\n": "",
        }
        for text, message in seeded.items():
            found = self.found(check_prose, **{"docs/a.md": text})
            self.assertIn(f"docs/a.md:{message}" if message else "", found, text)
            self.assertEqual(message == "", found == "", text)


TO_PASS = {
    **GOOD,
    "build/generated/bodies.cpp": '#include "list.inc"\n',
    "build/generated/list.inc": '#include "heddle/ops/add/add.cuh"\n',
    "heddle/engine/plan.cpp": '#include "heddle/ir/op.h"\nconst char* kLast = "add";\n',
    "heddle/ops/scan/scan.cuh": "",
    "heddle/ops/scan/scan.cpp": "",
    "requirements.txt": "clang-tidy==23.1.4\ntransformers==5.0.0\n",
    ".clang-tidy": "Checks: x\n",
    "cmake/flags.cmake": "",
    "scripts/parity_text.py": "Exercises: heddle/session\n",
    "scripts/parity_model.py": "import comparison\n",
    "scripts/comparison.py": "x = 1\n",
}


class PassedTest(unittest.TestCase):
    """A change is seen by what includes it, at any depth, and by nothing else."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for path, text in TO_PASS.items():
            self.write(path, text)

    def write(self, path, text):
        file = pathlib.Path(self.root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def digests(self):
        tree = passed.Tree(self.root, "build/generated")
        sources = [path for path in TO_PASS if path.endswith(".cpp")]
        return passed.tidy_digests(tree, sources) | passed.parity(self.root)

    def changed_by(self, path, text):
        """The names that have another digest where `path` has this text too."""
        before = self.digests()
        self.write(path, TO_PASS.get(path, "") + text)
        after = self.digests()
        self.write(path, TO_PASS.get(path, ""))
        return {name.rsplit("/", 1)[-1] for name, digest in after.items() if before.get(name) != digest}

    def test_a_change_is_seen_by_what_includes_it(self):
        code = "int x;\n"
        every = {path.rsplit("/", 1)[-1] for path in TO_PASS if path.endswith(".cpp")}
        both = {"parity_text.py", "parity_model.py"}
        for path, text, want in (
            ("heddle/ops/add/add.h", code, {"add.cpp", "llama.cpp", "bodies.cpp", "parity_model.py"}),
            ("heddle/session/answer.h", code, {"main.cpp", *both}),
            ("heddle/session/answer.h", "\n// int x;\n\n", set()),
            ("heddle/session/answer.h", "// NOLINT\n", {"main.cpp", *both}),
            ("heddle/session/answer.h", 'const char* x = "// y";\n', {"main.cpp", *both}),
            ("heddle/session/answer_test.cpp", code, set()),
            ("heddle/ops/scan/scan.cuh", code, set()),  # no model has it
            ("heddle/ops/add/add.sm80.cuh", code, set()),  # for GPUs
            ("heddle/tile/map.h", code, {"bodies.cpp", "parity_model.py"}),
            ("scripts/comparison.py", "y = 2\n", {"parity_model.py"}),
            (".clang-tidy", "x", every),
            ("cmake/flags.cmake", "x", every | both),
            ("requirements.txt", "clang-tidy==24\n", every | both),
            ("requirements.txt", "numpy==3\n", both),
        ):
            with self.subTest(path=path, text=text):
                self.assertEqual(self.changed_by(path, text), want)

    def test_digests_are_the_same_in_another_folder(self):
        here = self.digests()
        self.setUp()
        self.assertEqual(here, self.digests())

    def test_what_has_passed_is_recorded_and_what_is_no_more_goes(self):
        now = {"a": "1", "b": "2", "c": "3"}
        passed.add(self.root, "tidy", now, [("a", "1"), ("c", "3")])
        self.assertEqual(passed.file_of(self.root, "tidy").read_text(), "a 1\nc 3\n")
        now = {"a": "1", "b": "2", "c": "4"}
        passed.add(self.root, "tidy", now, [("b", "2")])
        self.assertEqual(passed.recorded(self.root, "tidy"), {("a", "1"), ("b", "2")})
        self.assertEqual(now.items() - passed.recorded(self.root, "tidy"), {("c", "4")})

    def test_some_of_many(self):
        names = [f"heddle/ir/a{i}.cpp" for i in range(9)]
        found = passed.first(self.root, "tidy", names, 4)
        self.assertEqual((len(found), len(set(found) & set(names))), (4, 4))
        self.assertEqual(passed.first(self.root, "tidy", names, 9), names)


class FunctionTest(unittest.TestCase):
    def test_heads_of_functions(self):
        text = """
namespace heddle {
struct S {
  S(int a, int b) : a_{a}, b_(b) {
    x();
  }
  int area() const { return a_; }
};
template <class T>
auto f(const std::map<int, int>& m, T t = {}) -> int {
  if (m) {
  }
  return 1;
}
const int kTable[] = {1, 2};
auto g = [](int x) { return x; };
TEST(Suite, Case) {
}
}
"""
        found = [(f.name, f.lines, f.parameters) for f in measure.cpp_functions("x.cpp", text)]
        self.assertEqual(found, [("S", 3, 2), ("area", 1, 0), ("f", 5, 2), ("TEST", 2, 0)])


if __name__ == "__main__":
    unittest.main()
