// Reads operations on layouts from stdin, one a line, and prints their results for scripts/parity_layouts.py:
//   coalesce A | compose A B | complement A SIZE | divide A B | product A B | inverse A | swizzle BITS BASE SHIFT OFFSET
// with a layout written as RANK SHAPE STRIDE SHAPE STRIDE ... A result is 1 and the coalesced layout, or 0 where there is none.
#include <iostream>
#include <string>

#include "heddle/base/invariant.h"
#include "heddle/tile/layout.h"

namespace heddle::tile {
namespace {

i32 read_number() {
  i32 number = 0;
  HEDDLE_CHECK(std::cin >> number);
  return number;
}

Layout read_layout() {
  Layout layout;
  for (i32 left = read_number(); left > 0; --left) {
    const i32 shape = read_number(), stride = read_number();
    layout = layout.with(shape, stride);
  }
  return layout;
}

void print(bool ok, const Layout& layout) {
  const Layout few = coalesce(layout);
  std::cout << ok;
  for (i32 i = 0; i < few.rank && ok; ++i) std::cout << ' ' << few.mode[i].shape << ' ' << few.mode[i].stride;
  std::cout << '\n';
}

void print(bool ok, const LayoutPair& pair) {
  print(ok, join(pair.inner, pair.outer));
}

void run_binary(const std::string& op) {
  const Layout a = read_layout(), b = read_layout();
  if (op == "compose") return print(composes(a, b), try_compose(a, b).layout);
  if (op == "divide") return divides(b, a) ? print(true, divide(a, b)) : print(false, Layout{});
  const bool ok = has_complement(a) && composes(complement(a, a.size() * b.cosize()), b);
  return ok ? print(true, product(a, b)) : print(false, Layout{});
}

void run(const std::string& op) {
  if (op == "coalesce") return print(true, coalesce(read_layout()));
  if (op == "inverse") return print(true, inverse(read_layout()));
  if (op == "complement") {
    const Layout a = read_layout();
    const i32 size = read_number();
    return has_complement(a) ? print(true, complement(a, size)) : print(false, Layout{});
  }
  if (op == "swizzle") {
    const i32 bits = read_number(), base = read_number(), shift = read_number();
    return print(true,
                 line(Swizzle{bits, base, shift}(read_number()) + 2));  // as a layout of so many elements
  }
  HEDDLE_CHECK(op == "compose" || op == "divide" || op == "product");
  run_binary(op);
}

}  // namespace
}  // namespace heddle::tile

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string op; std::cin >> op;) heddle::tile::run(op);
}
