# Writes a build's name into a C++ source: its version and a digest of its sources.
# cmake -DROOT=. -DLIST=names.txt -DOUT=version.cpp -DVERSION=0.1.0 -P version.cmake
# Each line of LIST has a path below ROOT.
file(STRINGS ${LIST} paths)
set(all "")
foreach(path ${paths})
  file(SHA256 ${ROOT}/${path} digest)
  string(APPEND all "${path} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUT} "// Generated from the tree by cmake/version.cmake.
#include \"heddle/base/version.h\"

namespace heddle {

std::string_view build_name() {
  return \"${VERSION} (sources ${digest})\";
}

}  // namespace heddle
")
