// The rotation of rows eight elements at a time, for whole kernels. Included inside the namespace of each.

// Eight neighbouring elements that turn with `other` (both halves of a head), among themselves, or not at all.
struct Turn {
  i32 at, other;  // numbers of eights in the row; other < 0: none
  i32 angle;      // number of eight numbers of the table; < 0: they do not turn
};

template <class Args>
inline i32 units_of(const Args& a, i32 columns) {
  if (a.interleaved) return columns / 8;
  return a.heads * (a.head_dim / 8 - a.rotary_dim / 16) + (columns - a.heads * a.head_dim) / 8;
}

template <class Args>
inline Turn turn_of(const Args& a, i32 unit) {
  const i32 head = a.head_dim / 8, turned = a.rotary_dim / 8;
  if (a.interleaved) {
    const bool turns = unit < a.heads * head && unit % head < turned;
    return {unit, -1, turns ? unit % head : -1};
  }
  const i32 each = head - turned / 2;
  if (unit >= a.heads * each) return {a.heads * head + unit - a.heads * each, -1, -1};
  const i32 begin = unit / each * head, inside = unit % each;
  if (inside >= turned / 2) return {begin + turned / 2 + inside, -1, -1};
  return {begin + inside, begin + inside + turned / 2, 2 * inside};
}

// sign: 1 to turn, -1 to turn back. A thread begins at unit `first_unit` of all rows.
template <class Config, DType kIn, DType kOut, class Args>
inline void turn_rows(const Args& a, const Tensor& from, const Tensor& to, float sign, i32 first_unit) {
  const i32 units = units_of(a, from.size[1]), total = from.size[0] * units;
#pragma unroll
  for (i32 n = 0; n < Config::kWords; ++n) {
    const i32 number = first_unit + n * i32(Config::kThreads);
    if (number < 0 || number >= total) return;
    const i32 row = number / units;
    const Turn turn = turn_of(a, number % units);
    const u8* const x = row_of(from, row);
    u8* const y = row_of(to, row);
    Vec8<kIn> first, second;
    Vec8<DType::kF32> angles[2];
    first.load(x, turn.at);
    if (turn.other >= 0) second.load(x, turn.other);
    if (turn.angle >= 0) angles[0].load_kept(row_of(a.table, row), turn.angle);
    if (turn.other >= 0) angles[1].load_kept(row_of(a.table, row), turn.angle + 1);
    if (turn.other >= 0) {
      const auto cosine = [&](i32 i) { return angles[i / 4].get(2 * i % 8); };
      const auto sine = [&](i32 i) { return angles[i / 4].get(2 * i % 8 + 1) * sign; };
      Vec8<kOut>::of([&](i32 i) {
        return first.get(i) * cosine(i) - second.get(i) * sine(i);
      }).store(y, turn.at);
      Vec8<kOut>::of([&](i32 i) {
        return second.get(i) * cosine(i) + first.get(i) * sine(i);
      }).store(y, turn.other);
    } else if (turn.angle >= 0) {
      Vec8<kOut>::of([&](i32 i) {
        const float cosine = angles[0].get(i / 2 * 2), sine = angles[0].get(i / 2 * 2 + 1) * sign;
        return i % 2 == 0 ? first.get(i) * cosine - first.get(i + 1) * sine
                          : first.get(i) * cosine + first.get(i - 1) * sine;
      }).store(y, turn.at);
    } else {
      Vec8<kOut>::of([&](i32 i) { return first.get(i); }).store(y, turn.at);
    }
  }
}
