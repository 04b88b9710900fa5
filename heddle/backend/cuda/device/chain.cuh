// A call's chain on the device: [prologue] main [epilogues...], composed at compile time from op bodies. The arguments of its
// parts lie one after the other in memory. If every epilogue of a chain can take columns of one row, each thread passes the two
// result columns that it holds through the epilogues in registers; `ask` prefetches their operands before the product.
#pragma once

#include "heddle/backend/cuda/device/block.cuh"

namespace heddle::device {

// For arguments without known values.
struct Unknown {};

template <class BodyType, class ArgsType, class KnownType = Unknown>
struct Link {
  using Body = BodyType;
  using Args = ArgsType;
  using Known = KnownType;
};

// The arguments at `bytes`: a reference, or a copy in which known values replace loads.
template <class L>
__forceinline__ decltype(auto) args_at(const u8* bytes) {
  using Args = typename L::Args;
  if constexpr (requires(Args& args) { L::Known::set(args); }) {
    Args args = *reinterpret_cast<const Args*>(bytes);
    L::Known::set(args);
    return args;
  } else {
    return *reinterpret_cast<const Args*>(bytes);
  }
}

// The bytes from one part's arguments to the next: each begins at a multiple of 16 bytes.
constexpr u32 args_stride(u32 bytes) {
  return (bytes + 15) / 16 * 16;
}

#include "heddle/tile/epilogue.cuh"

// The walk of an epilogue over the columns of one row that a thread holds in registers. It loads its operand before the
// product, so that the operand is there when the product is done. A body without value() has
//
//   begin_columns(block, a)    optional: all threads call it together, after inputs()
//   columns(block, a, row, columns)   takes the columns
//   place(block, a, row)         optional: what all columns of a row need, made ahead; whole words
//   columns_at(block, a, place, columns)   takes the columns with it
template <class L, class B>
struct ColumnWalk {
  using Body = typename L::Body;
  using Args = typename L::Args;
  static constexpr bool kHasValue = requires { Body::kTakes; };
  static constexpr bool kHasOperand = requires(B& block, const Args& a) { Body::operand(block, a, 0); };
  static constexpr bool kHasPlace = requires(B& block, const Args& a) { Body::place(block, a, 0); };
  static constexpr bool kExists =
      kHasValue || requires(B& block, const Args& a, Columns& two) { Body::columns(block, a, 0, two); };

  static void begin(B& block, const Args& a) {
    if constexpr (requires { Body::begin_columns(block, a); }) Body::begin_columns(block, a);
  }
  static Asked ask(B& block, const Args& a, i32 row, const Columns& columns) {
    const i32 count = Body::kTakes == 1 ? columns.count : columns.count > 0 ? 2 : 0;
    return Body::operand(block, a, row).from(Body::operand_column(a, columns.at)).ask(count);
  }
  static void run(B& block, const Args& a, i32 row, Columns& columns, const Asked& operand) {
    if constexpr (!kHasValue)
      Body::columns(block, a, row, columns);
    else if constexpr (Body::kTakes == 1)
      columns.each([&](Index i, float& value) {
        value = value_of(a, value, operand.get(i.at));
        Body::keep(block, a, row, columns.at, i, value);
      });
    else if (Body::changes(a, columns.at))
      put(columns,
          value_of(a, Pair{columns.value[0], columns.value[1]}, Pair{operand.get(0), operand.get(1)}));
  }

 private:
  template <class Value>
  static auto value_of(const Args& a, Value x, Value operand) {
    if constexpr (kHasOperand)
      return Body::value(a, x, operand);
    else
      return Body::value(a, x);
  }
  static void put(Columns& columns, Pair y) { columns.value[0] = y.first, columns.value[1] = y.second; }
  static void put(Columns& columns, float y) { columns = {columns.at / 2, 1, {y, 0}}; }
};

// Results of `place` for a row, of all epilogues that have it.
struct NoPlaces {
  static constexpr bool kAny = false;
};
template <class First, class Rest>
struct PlacesOfRow {
  static constexpr bool kAny = true;
  First first;
  [[no_unique_address]] Rest rest;
};

// Epilogues from the one whose arguments lie at `args` on.
template <class... Links>
struct Epilogues {
  template <class B>
  static constexpr bool kTakesColumns = true;

  template <class B, class Fragment>
  static void run(B&, const u8*, Fragment&) {}
  template <class B>
  static void begin_columns(B&, const u8*) {}
  struct Ahead {};
  template <class B>
  static Ahead ask(B&, const u8*, i32, const Columns&) {
    return {};
  }
  template <class B>
  static NoPlaces places(B&, const u8*, i32) {
    return {};
  }
  template <class B>
  static void columns(B&, const u8*, i32, Columns&, const Ahead&, const auto&) {}
};
template <class First, class... Rest>
struct Epilogues<First, Rest...> {
  template <class B>
  static constexpr bool kTakesColumns =
      ColumnWalk<First, B>::kExists && Epilogues<Rest...>::template kTakesColumns<B>;

  template <class B, class Fragment>
  static void run(B& block, const u8* args, Fragment& fragment) {
    First::Body::epilogue(block, args_at<First>(args), fragment);
    Epilogues<Rest...>::run(block, rest(args), fragment);
  }
  template <class B>
  static void begin_columns(B& block, const u8* args) {
    ColumnWalk<First, B>::begin(block, args_at<First>(args));
    Epilogues<Rest...>::begin_columns(block, rest(args));
  }
  struct Ahead {
    Asked first{DType::kF32};
    typename Epilogues<Rest...>::Ahead rest;
  };
  template <class B>
  static Ahead ask(B& block, const u8* args, i32 row, const Columns& columns) {
    Ahead ahead{.rest = Epilogues<Rest...>::ask(block, rest(args), row, columns)};
    if constexpr (ColumnWalk<First, B>::kHasOperand)
      ahead.first = ColumnWalk<First, B>::ask(block, args_at<First>(args), row, columns);
    return ahead;
  }
  template <class B>
  static auto places(B& block, const u8* args, i32 row) {
    const auto later = Epilogues<Rest...>::places(block, rest(args), row);
    if constexpr (ColumnWalk<First, B>::kHasPlace)
      return PlacesOfRow{First::Body::place(block, args_at<First>(args), row), later};
    else
      return later;
  }
  template <class B>
  static void columns(B& block, const u8* args, i32 row, Columns& columns, const Ahead& ahead,
                      const auto& places) {
    using Walk = ColumnWalk<First, B>;
    if constexpr (Walk::kHasPlace && requires { places.first; }) {
      First::Body::columns_at(block, args_at<First>(args), places.first, columns);
      Epilogues<Rest...>::columns(block, rest(args), row, columns, ahead.rest, places.rest);
    } else {
      if constexpr (Walk::kExists) Walk::run(block, args_at<First>(args), row, columns, ahead.first);
      Epilogues<Rest...>::columns(block, rest(args), row, columns, ahead.rest, places);
    }
  }

 private:
  static const u8* rest(const u8* args) { return args + args_stride(sizeof(typename First::Args)); }
};

template <class Main, class... After>
struct Chain {
  using Args = typename Main::Args;
  const u8* bytes;

  decltype(auto) args() const { return args_at<Main>(bytes); }
  static constexpr bool has_prologue() { return false; }
  template <class B, class View>
  void prologue(B&, i32, View) {}
  template <class B, class Fragment>
  void epilogues(B& block, Fragment& fragment) {
    Epilogues<After...>::run(block, after(), fragment);
  }
  // True if all epilogues take the columns of one row in registers.
  template <class B>
  static constexpr bool kTakesColumns = Epilogues<After...>::template kTakesColumns<B>;
  // All threads call it together, after inputs().
  template <class B>
  void begin_columns(B& block) const {
    Epilogues<After...>::begin_columns(block, after());
  }
  using Operands = typename Epilogues<After...>::Ahead;
  // Prefetches the epilogues' operands for the columns, of which place and number are known, before the product.
  template <class B>
  auto ask(B& block, i32 row, const Columns& columns) const {
    return Epilogues<After...>::ask(block, after(), row, columns);
  }
  // Returns what the epilogues need for all columns of a row besides `ask`: words, or NoPlaces.
  template <class B>
  auto places(B& block, i32 row) const {
    return Epilogues<After...>::places(block, after(), row);
  }
  template <class B>
  void columns(B& block, i32 row, Columns& columns, const auto& ahead, const auto& places) const {
    static_assert(kTakesColumns<B>);
    Epilogues<After...>::columns(block, after(), row, columns, ahead, places);
  }
  template <class B>
  void columns(B& block, i32 row, Columns& columns, const auto& ahead) {
    Epilogues<After...>::columns(block, after(), row, columns, ahead, NoPlaces());
  }

 private:
  const u8* after() const { return bytes + args_stride(sizeof(Args)); }
};

template <class Before, class Main, class... After>
struct ChainWithPrologue : Chain<Main, After...> {
  explicit ChainWithPrologue(const u8* all)
      : Chain<Main, After...>{all + args_stride(sizeof(typename Before::Args))}, before(all) {}
  const u8* before;

  static constexpr bool has_prologue() { return true; }
  template <class B, class View>
  void prologue(B& block, i32 row, View out) {
    Before::Body::prologue(block, args_at<Before>(before), row, out);
  }
};

// Runs the main op of a chain on one tile.
template <class Main, class C, class B>
__forceinline__ void run_chain(B& block, C& chain, const TileCoord& tile) {
  if constexpr (requires { Main::Body::run(block, chain.args(), tile, chain); })
    Main::Body::run(block, chain.args(), tile, chain);
  else
    Main::Body::run(block, chain.args(), tile);
  block.inputs();  // in case the tile read none
}

// Copies the tile's weights from memory into the ring.
template <class Main, class C, class L>
inline void stream_chain(L& loader, const C& chain, const TileCoord& tile) {
  if constexpr (requires { Main::Body::stream(loader, chain.args(), tile); })
    Main::Body::stream(loader, chain.args(), tile);
}

}  // namespace heddle::device
