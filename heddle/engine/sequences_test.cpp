#include "heddle/engine/sequences.h"

#include <numeric>
#include <random>

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

  // Reads the rest of a prompt, as a step would.
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

// Steps see five positions, and read from a multiple of two on.
struct Sliding {
  static constexpr AttentionCut kReach{.split_unit = 2, .window = 5};
  Capacity capacity{.pages_per_sequence = 50, .page_size = kPage, .splits = {.unit = 2}, .window = 5};
  static constexpr i32 kSequences = 3, kAdded = 17;  // sequences and positions in a step
  i32 pages = i32(most_pages(capacity, kSequences, kAdded));
  Sequences all{kSequences, 300, PagePool(pages, kPage), kReach};

  void add(SequenceId id, std::span<const i32> tokens) {
    all.grow(all.at(id), all.at(id).length() + i32(tokens.size()));
    all.extend(all.at(id), tokens);
  }
  i32 held() const { return pages - i32(all.pool().free_pages()); }
};

TEST(Sequences, PagesBeforeAWindowGoBack) {
  Sliding sliding;
  const SequenceId id = sliding.all.open({}, {});
  const Sequence& sequence = sliding.all.at(id);
  for (i32 length = 1; length <= 200; ++length) {
    sliding.add(id, counting(1, length));
    EXPECT_LE(sliding.held(), 5) << "seen: 5, a page to rewind by, parts of pages at both ends";
    for (i32 p = 0; p < i32(sequence.pages.size()); ++p) {
      const bool read = (p + 1) * kPage > first_read(Sliding::kReach, length);
      EXPECT_TRUE(sequence.pages[size_t(p)] >= 0 || !read) << "page " << p << " at length " << length;
      EXPECT_EQ(sequence.pages[size_t(p)] < 0, p < sequence.gone);
    }
  }
  EXPECT_EQ(sequence.gone, 48);  // one page back, at 196, steps read from 192 on
  sliding.all.close(id);
  EXPECT_EQ(sliding.held(), 0);
}

TEST(Sequences, RewindsByAPageWhereAWindowSlides) {
  Sliding sliding;
  const SequenceId id = sliding.all.open({}, {});
  const Sequence& sequence = sliding.all.at(id);
  for (i32 length = 1; length <= 60; ++length) {
    sliding.add(id, counting(1, length));
    const i32 back = std::min(length, kPage);
    sliding.all.rewind(sliding.all.at(id), length - back);
    ASSERT_EQ(sequence.length(), length - back);
    sliding.add(id, counting(back, length - back + 1));
  }
  // Further back, the sequence keeps what can still be found: everything, as long as nothing else was written
  // to the pages.
  ASSERT_GT(sequence.gone, 10);
  Sliding roomy{.pages = 40};
  const SequenceId other = roomy.all.open({}, {});
  roomy.add(other, counting(60));
  roomy.all.rewind(roomy.all.at(other), 30);
  EXPECT_EQ(roomy.all.at(other).length(), 28);
  EXPECT_EQ(roomy.all.at(other).gone, 5);
  roomy.add(other, counting(32, 28));
  EXPECT_EQ(roomy.all.at(other).tokens, counting(60));
  sliding.all.rewind(sliding.all.at(id), 30);
  EXPECT_EQ(sequence.length(), 0) << "the first pages were taken again";
  EXPECT_EQ(sliding.held(), 0);
}

TEST(Sequences, EqualBeginningsAreFoundBehindAWindow) {
  Sliding sliding{.pages = 60};
  const auto prompt = counting(90);
  const SequenceId first = sliding.all.open({}, {});
  sliding.add(first, prompt);
  const i32 held = sliding.held();
  const SequenceId second = sliding.all.open({}, prompt);
  EXPECT_EQ(sliding.all.at(second).length(), 88);
  EXPECT_EQ(sliding.all.at(second).pages.back(), sliding.all.at(first).pages[21]);
  EXPECT_EQ(sliding.held(), held) << "the same pages";
  EXPECT_EQ(sliding.all.at(second).seen[2], 0xffffffu);
}

// Whatever sequences do, the pool has enough pages, and no page that a step reads is missing.
TEST(Sequences, AWindowsPagesAreEnough) {
  Sliding sliding;
  std::mt19937 random(3);
  const auto below = [&](i32 end) { return i32(random() % u32(end)); };
  std::vector<SequenceId> open;
  std::vector<i32> text = counting(200);
  i32 most = 0;
  for (i32 turn = 0; turn < 5000; ++turn) {
    const i32 what = below(10);
    if (open.size() < Sliding::kSequences && what == 0) {
      open.push_back(sliding.all.open({}, std::span(text).first(size_t(1 + below(150)))));
    } else if (!open.empty() && what == 1) {
      const size_t at = size_t(below(i32(open.size())));
      sliding.all.close(open[at]);
      open.erase(open.begin() + i64(at));
    } else if (!open.empty() && what == 2) {
      Sequence& sequence = sliding.all.at(open[size_t(below(i32(open.size())))]);
      sliding.all.rewind(sequence, below(sequence.length() + 1));
    } else {  // a step with all of them
      i32 left = Sliding::kAdded;
      std::vector<std::pair<SequenceId, i32>> step;
      for (SequenceId id : open) {
        const i32 count = std::min(below(left + 1), 200 - sliding.all.at(id).length());
        left -= count;
        step.emplace_back(id, count);
        sliding.all.grow(sliding.all.at(id), sliding.all.at(id).length() + count);
      }
      most = std::max(most, sliding.held());
      for (auto [id, count] : step) {
        const Sequence& sequence = sliding.all.at(id);
        const i32 begin = sequence.length();
        for (i32 p = first_read(Sliding::kReach, begin) / kPage; p < i32(sequence.pages.size()); ++p)
          ASSERT_GE(sequence.pages[size_t(p)], 0) << "turn " << turn;
        sliding.all.extend(sliding.all.at(id), std::span(text).subspan(size_t(begin), size_t(count)));
      }
    }
  }
  EXPECT_LE(most, sliding.pages);
  EXPECT_GT(most, sliding.pages / 2);
}

}  // namespace
}  // namespace heddle
