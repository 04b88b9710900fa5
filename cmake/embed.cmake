# Writes files into a C++ source, for heddle_embed:
# cmake -DROOT=. -DLIST=names.txt -DOUT=x.cpp -DHEADER=heddle/a/b.h -DNAMESPACE=heddle -DFUNCTION=texts -P embed.cmake
# Each line of LIST has a path below ROOT. The texts are literals that know their length: counting it at
# compile time takes more steps than clang allows for a long text.
file(STRINGS ${LIST} paths)
set(entries)
foreach(path ${paths})
  file(READ ${ROOT}/${path} text)
  string(APPEND entries "    {\"${path}\"sv, R\"heddle_text(${text})heddle_text\"sv},\n")
endforeach()
file(WRITE ${OUT} "// Generated from the tree by cmake/embed.cmake.
#include \"${HEADER}\"

namespace ${NAMESPACE} {

std::span<const EmbeddedFile> ${FUNCTION}() {
  using namespace std::string_view_literals;
  static constexpr EmbeddedFile all[] = {
${entries}  };
  return all;
}

}  // namespace ${NAMESPACE}
")
