# Writes the texts of files into a C++ source:
# cmake -DROOT=. -DLIST=names.txt -DOUT=x.cpp -DHEADER=heddle/a/b.h -DNAMESPACE=heddle -DTYPE=Text -DFUNCTION=texts -P embed.cmake
# LIST has a path below ROOT in each line; TYPE is an aggregate of a path and a text.
file(STRINGS ${LIST} paths)
set(entries)
foreach(path ${paths})
  file(READ ${ROOT}/${path} text)
  string(APPEND entries "    {\"${path}\", R\"heddle_text(${text})heddle_text\"},\n")
endforeach()
file(WRITE ${OUT} "// Generated from the tree by cmake/embed.cmake.
#include \"${HEADER}\"

namespace ${NAMESPACE} {

std::span<const ${TYPE}> ${FUNCTION}() {
  static constexpr ${TYPE} all[] = {
${entries}  };
  return all;
}

}  // namespace ${NAMESPACE}
")
