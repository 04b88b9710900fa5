# Writes files into a C++ source, as heddle_embed says:
# cmake -DROOT=. -DLIST=names.txt -DOUT=x.cpp -DHEADER=heddle/a/b.h -DNAMESPACE=heddle -DFUNCTION=texts -P embed.cmake
# LIST has a path below ROOT in each line.
file(STRINGS ${LIST} paths)
set(entries)
foreach(path ${paths})
  file(READ ${ROOT}/${path} text)
  string(APPEND entries "    {\"${path}\", R\"heddle_text(${text})heddle_text\"},\n")
endforeach()
file(WRITE ${OUT} "// Generated from the tree by cmake/embed.cmake.
#include \"${HEADER}\"

namespace ${NAMESPACE} {

std::span<const EmbeddedFile> ${FUNCTION}() {
  static constexpr EmbeddedFile all[] = {
${entries}  };
  return all;
}

}  // namespace ${NAMESPACE}
")
