// Rows of tensors, of on-chip matrices and of packed weights, as tile bodies see them (tile/block.h). Included once per
// SIMD target, inside its namespace, after simd_lanes.h.

// The type of elements where the compiler knows it.
struct Float32 {
  constexpr operator DType() const { return DType::kF32; }  // NOLINT: stands for a DType
};

template <class Type>
struct Strided;

// One row in memory or on chip. Type: DType, or what stands for one.
template <class Type>
struct Row {
  u8* data;
  [[no_unique_address]] Type dtype;

  operator Row<DType>() const
    requires(!std::is_same_v<Type, DType>)
  {
    return {data, dtype};
  }  // NOLINT: any row is one of some type

  HWY_INLINE u8* at(i32 j) const { return data + i64(j) * size_of(dtype); }
  HWY_INLINE Value load(Lanes i) const { return load_lanes(dtype, at(i.at)); }
  Value load(FewLanes i) const {
    alignas(64) u8 lanes[4 * kLanes] = {};
    std::memcpy(lanes, at(i.at), i.bytes(size_of(dtype)));
    return load_lanes(dtype, lanes);
  }
  HWY_INLINE void store(Lanes i, Value value) const { store_lanes(dtype, at(i.at), value); }
  void store(FewLanes i, Value value) const {
    alignas(64) u8 lanes[4 * kLanes];
    store_lanes(dtype, lanes, value);
    std::memcpy(at(i.at), lanes, i.bytes(size_of(dtype)));
  }
  HWY_INLINE ValuePair load_pair(Lanes i) const { return load_lane_pairs(dtype, at(2 * i.at)); }
  ValuePair load_pair(FewLanes i) const {
    alignas(64) u8 lanes[8 * kLanes] = {};
    std::memcpy(lanes, at(2 * i.at), i.bytes(2 * size_of(dtype)));
    return load_lane_pairs(dtype, lanes);
  }
  HWY_INLINE void store_pair(Lanes i, Value first, Value second) const {
    store_lane_pairs(dtype, at(2 * i.at), {first, second});
  }
  void store_pair(FewLanes i, Value first, Value second) const {
    alignas(64) u8 lanes[8 * kLanes];
    store_lane_pairs(dtype, lanes, {first, second});
    std::memcpy(at(2 * i.at), lanes, i.bytes(2 * size_of(dtype)));
  }
  HWY_INLINE Value load_rounded(auto i, DType as) const { return round_to(as, load(i)); }
  HWY_INLINE Value load_bit(Lanes i) const { return bits(i.at, kLanes); }
  HWY_INLINE Value load_bit(FewLanes i) const { return bits(i.at, i.count); }
  float get(i32 j) const { return get_element(dtype, at(j)); }
  void set(i32 j, float value) const { set_element(dtype, at(j), value); }
  i32 get_int(i32 j) const { return reinterpret_cast<const i32*>(data)[j]; }
  void set_int(i32 j, i32 value) const { reinterpret_cast<i32*>(data)[j] = value; }
  void set_byte(i32 j, i32 value) const { data[j] = u8(value); }
  Row from(i64 j) const { return {data + j * size_of(dtype), dtype}; }
  Strided<Type> every(i64 n) const { return {*this, n}; }

 private:
  // Bits begin, begin + 1, ... of 32-bit words, `count` of them, as 0 or 1; reads no word without one of them.
  HWY_INLINE Value bits(i32 begin, i32 count) const {
    const i32 shift = begin % 32;
    u32 window = u32(get_int(begin / 32)) >> shift;
    if (shift + count > 32) window |= u32(get_int(begin / 32 + 1)) << (32 - shift);
    const Vec32 bit = hn::And(hn::Shr(hn::Set(d32, window), hn::Iota(d32, 0)), hn::Set(d32, 1u));
    return hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<D>(), bit));
  }
};

// Lanes that do not lie side by side, one element at a time.
template <class Element>
HWY_INLINE Value gather(i32 begin, i32 count, Element&& element) {
  alignas(64) float lanes[kLanes] = {};
  for (i32 lane = 0; lane < count; ++lane) lanes[lane] = element(begin + lane);
  return hn::Load(d, lanes);
}

template <class Type>
struct Strided {
  Row<Type> view;
  i64 step;

  float get(i32 j) const { return view.from(j * step).get(0); }
  Value load(Lanes i) const {
    return gather(i.at, kLanes, [&](i32 j) { return get(j); });
  }
  Value load(FewLanes i) const {
    return gather(i.at, i.count, [&](i32 j) { return get(j); });
  }
  void store(Lanes i, Value value) const { scatter(i.at, kLanes, value); }
  void store(FewLanes i, Value value) const { scatter(i.at, i.count, value); }

 private:
  void scatter(i32 begin, i32 count, Value value) const {
    alignas(64) float lanes[kLanes];
    hn::Store(value.v, d, lanes);
    for (i32 lane = 0; lane < count; ++lane) view.from((begin + lane) * step).set(0, lanes[lane]);
  }
};

struct WeightRow {
  const Weight& w;
  i32 row;

  float get(i32 k) const { return weight_element(w, row, k); }
  Value load(Lanes i) const {
    return gather(i.at, kLanes, [&](i32 k) { return get(k); });
  }
  Value load(FewLanes i) const {
    return gather(i.at, i.count, [&](i32 k) { return get(k); });
  }
};
