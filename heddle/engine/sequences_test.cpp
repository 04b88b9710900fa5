#include "heddle/engine/sequences.h"

#include <numeric>

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr i32 kPage = 4;

std::vector<i32> counting(i32 count, i32 first = 0) {
  std::vector<i32> tokens(size_t(count), 0);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

struct Held {
  Sequences all{3, 100, PagePool(12, kPage)};

  // Runs the rest of a prompt, as a step would.
  SequenceId read(std::span<const i32> prompt) {
    const SequenceId id = all.open({}, prompt);
    Sequence& sequence = all.at(id);
    const auto rest = prompt.subspan(size_t(sequence.length()));
    all.grow(sequence, i32(prompt.size()));
    all.extend(sequence, rest);
    return id;
  }
};

TEST(Sequences, EqualBeginningsHoldTheSamePages) {
  Held held;
  const auto prompt = counting(10);
  const SequenceId first = held.read(prompt);
  auto other = prompt;
  other[9] = 50;
  const SequenceId second = held.all.open({}, other);
  EXPECT_EQ(held.all.at(second).length(), 8);
  EXPECT_EQ(held.all.at(second).pages[1], held.all.at(first).pages[1]);
  EXPECT_EQ(held.all.at(second).seen[0], 0xffu) << "what it begins with counts as seen";
  EXPECT_EQ(held.all.pool().free_pages(), 12u - 3);
  EXPECT_EQ(held.all.at(held.all.open({}, std::span(prompt).first(8))).length(), 4)
      << "the last token is never spared: a step must choose what follows it";
  EXPECT_THROW(held.all.open({}, {}), Error);
}

TEST(Sequences, WhatAnEndedOneHeldIsFoundUntilItIsTaken) {
  Held held;
  const auto prompt = counting(9);
  held.all.close(held.read(prompt));
  EXPECT_EQ(held.all.pool().free_pages(), 12u);
  EXPECT_EQ(held.all.pool().find(prompt).size(), 2u);
  const SequenceId other = held.all.open({}, {});
  held.all.grow(held.all.at(other), 9 * kPage);  // all pages that were never used
  EXPECT_EQ(held.all.pool().find(prompt).size(), 2u);
  held.all.grow(held.all.at(other), 11 * kPage);  // the part without content, then the end
  EXPECT_EQ(held.all.pool().find(prompt).size(), 1u);
  held.all.grow(held.all.at(other), 12 * kPage);
  EXPECT_EQ(held.all.pool().find(prompt).size(), 0u);
}

TEST(Sequences, ContentBehindATakenPageIsNeverFound) {
  PagePool pool(3, 1);
  const std::vector<i32> tokens = {7, 8};
  std::vector<i32> pages = {pool.take(), pool.take()};
  pool.note(std::span(pages).first(1), std::span(tokens).first(1));
  pool.note(pages, tokens);
  EXPECT_EQ(pool.find(tokens), pages);
  pool.forget(pages[0]);
  const i32 third = pool.take();
  pool.note(std::span(&third, 1), std::span(tokens).first(1));
  EXPECT_EQ(pool.find(tokens), std::vector<i32>{third});
}

TEST(Sequences, ASecondCopyIsNotFoundButIsGoneBehind) {
  Held held;
  const auto prompt = counting(13);
  const SequenceId a = held.all.open({}, prompt), b = held.all.open({}, prompt);
  for (const SequenceId id : {a, b}) {
    held.all.grow(held.all.at(id), 8);
    held.all.extend(held.all.at(id), std::span(prompt).first(8));
  }
  EXPECT_EQ(held.all.pool().find(prompt), held.all.at(a).pages);
  held.all.grow(held.all.at(b), 12);
  held.all.extend(held.all.at(b), std::span(prompt).subspan(8, 4));
  EXPECT_EQ(held.all.pool().find(prompt).back(), held.all.at(b).pages.back());
}

TEST(Sequences, RewindKeepsWhatOthersHold) {
  Held held;
  const auto prompt = counting(10);
  const SequenceId first = held.read(prompt);
  Sequence& one = held.all.at(first);
  held.all.rewind(one, 6);
  EXPECT_EQ(one.length(), 6);
  EXPECT_EQ(one.pages.size(), 2u);
  EXPECT_EQ(one.seen[0], 0x3fu);
  EXPECT_EQ(held.all.pool().find(prompt).size(), 1u) << "the page that is written again is not found";
  held.all.extend(one, counting(2, 6));
  EXPECT_EQ(held.all.pool().find(prompt).size(), 2u);
  const SequenceId second = held.all.open({}, prompt);
  EXPECT_EQ(held.all.at(second).length(), 8);
  held.all.rewind(one, 7);
  EXPECT_EQ(one.length(), 4) << "a page that another holds is not written";
  EXPECT_EQ(one.pages.size(), 1u);
  held.all.close(first);
  held.all.close(second);
  EXPECT_EQ(held.all.pool().free_pages(), 12u);
}

}  // namespace
}  // namespace heddle
