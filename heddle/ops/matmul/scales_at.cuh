// Where scales of scaled_mm lie. Included in the namespaces of the kernels that use it.

// A scale at (row, group) of scales that lie in rows or in columns; one serves all where there is one.
struct ScalesAt {
  const float* data;
  i32 row, column;  // strides

  template <class Matrices>
  explicit ScalesAt(const Matrices& scales)
      : data(reinterpret_cast<const float*>(scales.data.data)),
        row(scales.rows() == 1  ? 0
            : scales.transposed ? 1
                                : i32(scales.data.stride[0])),
        column(scales.cols() == 1  ? 0
               : scales.transposed ? i32(scales.data.stride[0])
                                   : 1) {}
  float get(i32 r, i32 c) const { return data[r * row + c * column]; }
};
