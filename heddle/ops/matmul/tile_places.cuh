// The places of tiles: corners of boxes, and groups, whose ends are in memory. Included inside the namespace of the kernel of products.

// A box's place: (across, along) k in x and y, and the batch where the tensor has three dimensions.
template <i32 kRank>
inline auto corner(i32 x, i32 y, i32 batch) {
  if constexpr (kRank == 3)
    return arch::Corner3{x, y, batch};
  else
    return arch::Corner2{x, y};
}
template <class Corner>
inline Corner turned(Corner at) {
  const i32 x = at.x;
  at.x = at.y, at.y = x;
  return at;
}

struct GroupEnds {
  const Tensor& ends;
  i32 count;

  explicit GroupEnds(const Tensor& tensor) : ends(tensor), count(tensor.size[0]) {}
  i32 end(i32 group) const { return reinterpret_cast<const i32*>(ends.data)[i64(group) * ends.stride[0]]; }
  i32 begin(i32 group) const { return group == 0 ? 0 : end(group - 1); }
  // The group of a row or term, `count` for one of no group.
  i32 of(i32 row) const {
    i32 first = 0, last = count;
    while (first < last) {
      const i32 middle = (first + last) / 2;
      if (end(middle) <= row)
        first = middle + 1;
      else
        last = middle;
    }
    return first;
  }
};
