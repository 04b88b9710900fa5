# Writes the texts of files into a C++ source: cmake -DROOT=. -DLIST=names.txt -DOUT=x.cpp -P embed.cmake
# LIST has a path below ROOT in each line.
file(STRINGS ${LIST} paths)
set(entries)
foreach(path ${paths})
  file(READ ${ROOT}/${path} text)
  string(APPEND entries "    {\"${path}\", R\"heddle_text(${text})heddle_text\"},\n")
endforeach()
file(WRITE ${OUT} "// Generated from the tree by cmake/embed.cmake.
#include \"heddle/backend/cuda/sources.h\"

namespace heddle::cuda {

std::span<const DeviceSource> device_sources() {
  static constexpr DeviceSource all[] = {
${entries}  };
  return all;
}

}  // namespace heddle::cuda
")
