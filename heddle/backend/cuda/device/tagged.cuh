// Tagged edges: elements that travel between workers stand each before a tag, the step that made them, so that one load
// says both whether they are there and what they are: who writes them needs no fence. A counter without an order says
// when it is worth to look. Bodies know nothing of it: consumers put the bare elements on chip when their tags have come,
// and write what a tile left there with tags.
// An element and its tag are 4 or 8 bytes, which no store and no load of a thread tears.
// One copy of a buffer is enough: the check orders who writes it behind all who read the step before, and each of its
// elements is written in each step, so that a reader finds the tag of its step or of the one before. That is why two
// bytes of a tag will do, and why any other is waited for in vain.
#pragma once

#include "heddle/backend/cuda/device/cta.cuh"

namespace heddle::device {

constexpr i32 kTaggedBatch = 8;  // words of 16 bytes that a thread has under way
// Up to so many words of a thread are looked at from the start; of more, once a counter says that it is worth to.
constexpr i32 kPolledWords = 2;

// A wait that ends within its limit.
class Patience {
 public:
  explicit Patience(const KernelParams& p) : p_(p) {}

  // False: the run was stopped, or is now, with the fault that `make` says.
  template <class Make>
  bool once_more(Make&& make) {
    if (++turns_ % 256 != 0) return true;
    if (begin_ == 0) begin_ = arch::nanoseconds();
    if (arch::load_relaxed(&p_.fault->stop)) return false;
    if (arch::nanoseconds() - begin_ <= u64(p_.spin_limit) * 1000) return true;
    report_fault(p_.fault, make());
    return false;
  }

 private:
  const KernelParams& p_;
  u32 turns_ = 0;
  u64 begin_ = 0;
};

// 16 bytes: four elements of two bytes, or two of four, each before its tag.
template <i32 kElement>
struct TaggedWord {
  static constexpr u32 kCount = 8 / kElement;
  uint4 bits;

  static u32 tag_of(u32 epoch) { return kElement == 2 ? epoch & 0xffff : epoch; }
  bool is_of(u32 tag) const {
    if (kElement == 4) return ((bits.y ^ tag) | (bits.w ^ tag)) == 0;
    tag <<= 16;
    return (((bits.x ^ tag) | (bits.y ^ tag) | (bits.z ^ tag) | (bits.w ^ tag)) & 0xffff0000u) == 0;
  }
  u32 first_without(u32 tag) const {
    u32 i = 0;
    while (i + 1 < kCount && this->tag(i) == tag) ++i;
    return i;
  }
  u32 tag(u32 i) const {
    if (kElement == 4) return i == 0 ? bits.y : bits.w;
    return (i == 0 ? bits.x : i == 1 ? bits.y : i == 2 ? bits.z : bits.w) >> 16;
  }
  u64 bare() const {
    if (kElement == 4) return bits.x | u64(bits.z) << 32;
    return (bits.x & 0xffff) | bits.y << 16 | u64((bits.z & 0xffff) | bits.w << 16) << 32;
  }
};

// What a tile left on chip for others.
struct TaggedMade {
  u8* words = nullptr;
  const u8* bare = nullptr;
  u32 count = 0, element = 0;  // bytes of an element
  u32 epoch = 0;

  // By all consumers, once all of it is there.
  void give() const {
    for (u32 i = arch::thread(); i < count; i += kConsumers)
      if (element == 2)
        arch::store_relaxed(reinterpret_cast<u32*>(words) + i,
                            reinterpret_cast<const u16*>(bare)[i] | epoch << 16);
      else
        arch::store_relaxed(reinterpret_cast<u64*>(words) + i,
                            reinterpret_cast<const u32*>(bare)[i] | u64(epoch) << 32);
  }
};

// What a tile reads and writes of tagged buffers; in the queue of instructions. The tensor that it writes is the first.
struct TaggedTile {
  u32 first, count;  // as TaggedCall
  bool reads, many;  // whether it reads any; more words than are looked at from the start
  TaggedPart part;
  TaggedTensor tensors[kTagged ? kMostTagged : 1];

  // The rest is by all lanes of the controller.
  void clear() { count = 0, reads = many = false; }
  void fetch(const KernelParams& p, u32 call, const TaggedPart& makes, u8* args) {
    const TaggedCall& of = p.tagged_calls[call];
    const u32 lane = arch::thread() % 32;
    first = of.first, count = of.count, part = makes;
    if (lane >= of.count) return;
    const TaggedTensor tensor = tensors[lane] = p.tagged[of.first + lane];
    if (!tensor.writes) {
      reads = true;
      if (tensor.bytes > u32(8 * kPolledWords * kConsumers)) many = true;
    }
    u8* at = Cta::stage() + tensor.place + tensor.offset;
    if (tensor.writes) at -= makes.begin / 16 * 16;
    *reinterpret_cast<u8**>(args + tensor.argument) = at;
  }

  // By all consumers: waits for all elements that the tile reads. False: the run was stopped.
  bool take(const KernelParams& p, u32 epoch) const {
    for (u32 i = 0; i < count; ++i)
      if (!tensors[i].writes && !(tensors[i].element == 2 ? take<2>(p, i, epoch) : take<4>(p, i, epoch)))
        return false;
    return true;
  }
  // What the tile makes; asked for while the slot of the queue is still its consumers'.
  TaggedMade made(const KernelParams& p, u32 epoch) const {
    if (count == 0 || !tensors[0].writes) return {};
    const u32 element = tensors[0].element;
    return {p.tagged_words + tensors[0].words + 2 * part.begin, Cta::stage() + part.begin % 16,
            part.bytes / element, element, epoch};
  }

 private:
  template <i32 kElement>
  bool take(const KernelParams& p, u32 index, u32 epoch) const {
    using Word = TaggedWord<kElement>;
    const TaggedTensor& from = tensors[index];
    const u8* words = p.tagged_words + from.words;
    auto* to = reinterpret_cast<u64*>(Cta::stage() + from.place);
    const u32 count = from.bytes / 8, wanted = Word::tag_of(epoch);
    Patience patience(p);
    for (u32 begin = arch::thread(); begin < count; begin += kTaggedBatch * kConsumers) {
      Word word[kTaggedBatch] = {};  // else those past the end had registers throughout the kernel
      for (u32 missing = ~0u;;) {
#pragma unroll
        for (u32 b = 0; b < kTaggedBatch; ++b)
          if (const u32 at = begin + b * kConsumers; at < count && (missing >> b & 1))
            word[b].bits = arch::load_halves(words + at * 16);
        missing = 0;
#pragma unroll
        for (u32 b = 0; b < kTaggedBatch; ++b)
          if (begin + b * kConsumers < count && !word[b].is_of(wanted)) missing |= 1u << b;
        if (missing == 0) break;
        const auto fault = [&] {
          const u32 at = begin + u32(__popc((missing & -missing) - 1)) * kConsumers;
          const Word late{arch::load_halves(words + at * 16)};
          const u32 place = late.first_without(wanted);
          return FaultRecord{.awaited = Awaited::kTag,
                             .seen = late.tag(place),
                             .wanted = wanted,
                             .tensor = first + index,
                             .element = at * Word::kCount + place};
        };
        if (!patience.once_more(fault)) return false;
      }
#pragma unroll
      for (u32 b = 0; b < kTaggedBatch; ++b)
        if (const u32 at = begin + b * kConsumers; at < count) to[at] = word[b].bare();
    }
    return true;
  }
};

}  // namespace heddle::device
