# The folder is the registration: these functions list the folders' files and write the list as code in the
# build folder. CONFIGURE_DEPENDS makes a plain build notice a new folder or file.

# Tests do little work themselves, so the compiler optimises nothing in them. In a build with sanitizers the code that they
# call is checked for undefined behaviour, and observed by fuzzers, but not they: that takes a third off the time to compile
# them. A program links these options last, because options of its own come before those of heddle_flags, which give the
# sanitizers.
add_library(heddle_test_options INTERFACE)
target_compile_options(heddle_test_options INTERFACE -O0)
# This linker takes a third to a half of the time of the usual one.
find_program(HEDDLE_GOLD ld.gold)
if(HEDDLE_GOLD AND NOT HEDDLE_SANITIZE)
  target_link_options(heddle_test_options INTERFACE -fuse-ld=gold)
endif()
if(HEDDLE_SANITIZE MATCHES undefined)
  target_compile_options(heddle_test_options INTERFACE -fno-sanitize=undefined -fno-sanitize=fuzzer-no-link)
endif()

# What takes little of the time of tests, so that the compiler optimises nothing in it in a build with sanitizers.
add_library(heddle_cold_options INTERFACE)
if(HEDDLE_SANITIZE)
  target_compile_options(heddle_cold_options INTERFACE $<BUILD_INTERFACE:-O0>)
endif()

# heddle_test(PROGRAM NAME LIBRARY sources): a GoogleTest program and the test of CTest that runs it; none without
# sources.
function(heddle_test program name library sources)
  if(NOT BUILD_TESTING OR NOT sources)
    return()
  endif()
  add_executable(${program} ${sources})
  heddle_unite(${program})
  target_link_libraries(${program} PRIVATE ${library} heddle_test_main heddle_test_options)
  target_compile_definitions(${program} PRIVATE HEDDLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  heddle_precompile(${program} test)
  add_test(NAME ${name} COMMAND ${program} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()

# heddle_carry(PROGRAM): the test is copied to a machine with a GPU, in the folder tests of the bundle (`make
# gpu-tests`), where it finds the bundle's libraries.
add_custom_target(gpu_tests)
function(heddle_carry program)
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
  install(TARGETS ${program} RUNTIME DESTINATION tests COMPONENT gpu_tests EXCLUDE_FROM_ALL)
  add_dependencies(gpu_tests ${program})
endfunction()

# heddle_layer(NAME deps...): makes a library of the sources below heddle/NAME, and its tests. Every
# *_test.cpp of the folder goes into one GoogleTest program test_NAME, and every *_gpu_test.cpp into one
# gpu_test_NAME, which `make gpu-tests` copies. Each x_fuzz.cpp becomes a test that runs it once over the
# inputs in tests/fuzz/x, with HEDDLE_FUZZ as a libFuzzer program fuzz_x. Options:
#   OWN_OPTIONS  the library has compiler options or precompiled headers of its own
#   COLD         it takes little of the time of tests
#   THREADED     only these of its tests start threads: a build with ThreadSanitizer leaves out the others. It leaves out
#                inputs of fuzzers, too.
function(heddle_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "OWN_OPTIONS;COLD" "" "THREADED")
  string(REPLACE "/" "_" target heddle_${name})
  set(folder ${PROJECT_SOURCE_DIR}/heddle/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(gpu_tests ${tests})
  list(FILTER gpu_tests INCLUDE REGEX "_gpu_test\\.cpp$")
  list(FILTER tests EXCLUDE REGEX "_gpu_test\\.cpp$")
  set(fuzzers ${sources})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cpp$")
  if(NOT sources)
    return()
  endif()
  add_library(${target} STATIC ${sources})
  set(precompiled program)
  set(cold)
  if(layer_OWN_OPTIONS)
    set(precompiled own)
  elseif(layer_COLD)
    set(precompiled cold)
    set(cold $<BUILD_INTERFACE:heddle_cold_options>)
  endif()
  heddle_unite(${target})
  target_link_libraries(${target} PUBLIC heddle_flags ${layer_UNPARSED_ARGUMENTS} PRIVATE ${cold})
  heddle_precompile(${target} ${precompiled})
  if(HEDDLE_SANITIZE STREQUAL "thread" AND DEFINED layer_THREADED)
    list(JOIN layer_THREADED "|" threaded)
    list(FILTER tests INCLUDE REGEX "/(${threaded})\\.cpp$")
  endif()
  string(REPLACE "/" "_" program test_${name})
  heddle_test(${program} ${name} ${target} "${tests}")
  if(NOT HEDDLE_SANITIZE)  # there the compiler is hidden from tests, and they would be skipped
    heddle_test(gpu_${program} gpu_${name} ${target} "${gpu_tests}")
  endif()
  if(TARGET gpu_${program})
    heddle_carry(gpu_${program})
    set_tests_properties(gpu_${name} PROPERTIES SKIP_REGULAR_EXPRESSION "no GPU can be used here: ")
  endif()
  if(HEDDLE_SANITIZE STREQUAL "thread")
    return()
  endif()
  foreach(fuzzer ${fuzzers})
    get_filename_component(base ${fuzzer} NAME_WE)
    string(REGEX REPLACE "(.*)_fuzz" "\\1" subject ${base})
    if(HEDDLE_FUZZ)
      set(program fuzz_${subject})
      add_executable(${program} ${fuzzer})
      target_link_options(${program} PRIVATE -fsanitize=fuzzer)
      set(once -runs=0 -rss_limit_mb=4096)  # reads the folder, and makes no inputs of its own
    else()
      set(program replay_${subject})
      add_executable(${program} ${fuzzer} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.cpp)
      set(once)
    endif()
    target_link_libraries(${program} PRIVATE ${target} heddle_fuzz_main)
    heddle_precompile(${program} program)
    if(BUILD_TESTING)
      add_test(NAME replay_${subject} COMMAND ${program} ${once} ${PROJECT_SOURCE_DIR}/tests/fuzz/${subject})
    endif()
  endforeach()
endfunction()

# heddle_embed(TARGET HEADER NAMESPACE FUNCTION PATTERN...): writes the files that match into TARGET, as
# `std::span<const EmbeddedFile> FUNCTION()`, sorted by path. HEADER declares it; HEADER and the patterns are
# relative to the current folder. An edit of a file compiles only that list again. A header of an
# op or of kit that includes a standard header is left out: only the host uses it.
function(heddle_embed target header namespace function)
  file(RELATIVE_PATH header ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${header})
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  foreach(file ${files})
    if(file MATCHES "/heddle/(ops|kit)/.*\\.h$")
      file(STRINGS ${file} standard REGEX "^#include <" LIMIT_COUNT 1)
      if(standard)
        list(REMOVE_ITEM files ${file})
      endif()
    endif()
  endforeach()
  list(SORT files)
  set(names)
  foreach(file ${files})
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${file})
    string(APPEND names "${name}\n")
  endforeach()
  set(list ${CMAKE_BINARY_DIR}/generated/${function}.txt)
  set(out ${CMAKE_BINARY_DIR}/generated/${function}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  file(CONFIGURE OUTPUT ${list} CONTENT "${names}" @ONLY)
  add_custom_command(OUTPUT ${out} DEPENDS ${files} ${list} ${script} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DLIST=${list} -DOUT=${out} -DHEADER=${header}
            -DNAMESPACE=${namespace} -DFUNCTION=${function} -P ${script})
  target_sources(${target} PRIVATE ${out})
endfunction()

# heddle_version(TARGET FOLDER...): writes the build's name into TARGET. The name depends on the sources,
# without tests, in folders of heddle/.
function(heddle_version target)
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/heddle/\\1/*")
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${ARGN})
  list(FILTER files EXCLUDE REGEX "_(test|fuzz)\\.cpp$")
  list(SORT files)
  list(JOIN files "\n" names)
  set(list ${CMAKE_BINARY_DIR}/generated/version.txt)
  set(out ${CMAKE_BINARY_DIR}/generated/version.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/version.cmake)
  file(CONFIGURE OUTPUT ${list} CONTENT "${names}\n" @ONLY)
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/)
  add_custom_command(OUTPUT ${out} DEPENDS ${files} ${list} ${script} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DLIST=${list} -DOUT=${out} -DVERSION=${PROJECT_VERSION}
            -P ${script})
  target_sources(${target} PRIVATE ${out})
endfunction()

# heddle_list(FOLDER PATTERN OUT): the names x for which heddle/FOLDER/<PATTERN with @ = x> exists, and in
# OUT_x the path of that file from the repository root, without its extension. A * in PATTERN stands for any
# folder. Pass BODIES at the end if x.cuh must be next to it.
function(heddle_list folder pattern out)
  set(names)
  set(root ${PROJECT_SOURCE_DIR}/heddle/${folder})
  string(REPLACE "@" "*" glob ${pattern})
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${root} ${root}/${glob})
  get_filename_component(base ${folder} NAME)
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    get_filename_component(parent ${file} DIRECTORY)
    string(REPLACE "@" ${name} expected ${pattern})
    string(REPLACE "*" "${parent}" expected ${expected})
    # x_test.cpp is a test, and the file named like its folder holds what the entries share.
    if(NOT file STREQUAL expected OR name MATCHES "_test$" OR name STREQUAL base)
      continue()
    endif()
    string(REGEX REPLACE "\\.[a-z]+$" "" path ${file})
    if("BODIES" IN_LIST ARGN AND NOT EXISTS ${root}/${path}.cuh)
      continue()
    endif()
    if(name IN_LIST names)
      message(FATAL_ERROR "heddle/${folder}/${path} and ${${out}_${name}} have one name; rename one of them")
    endif()
    list(APPEND names ${name})
    set(${out}_${name} heddle/${folder}/${path})
    set(${out}_${name} heddle/${folder}/${path} PARENT_SCOPE)
  endforeach()
  list(SORT names)
  set(${out} ${names} PARENT_SCOPE)
endfunction()

# heddle_registry(TARGET FOLDER PATTERN TYPE ENTRY FUNCTION HEADER [BODIES]): writes
# `std::span<const TYPE* const> FUNCTION()`, which HEADER declares, with one `const TYPE& <name>::ENTRY()` for each name that
# heddle_list finds, and links it into TARGET. Entries are alike, and name the same things in namespaces of their own.
function(heddle_registry target folder pattern type entry function header)
  heddle_list(${folder} ${pattern} names ${ARGN})
  set(declarations)
  set(entries)
  foreach(name ${names})
    string(APPEND declarations "namespace ${name} {\nconst ${type}& ${entry}();\n}\n")
    string(APPEND entries "&${name}::${entry}(), ")
  endforeach()
  set(file ${CMAKE_BINARY_DIR}/generated/${function}.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT
"// Generated from the folders of heddle/${folder}.
#include \"heddle/${header}\"

namespace heddle {

${declarations}
std::span<const ${type}* const> ${function}() {
  static const ${type}* const all[] = {${entries}};
  return all;
}

}  // namespace heddle
" @ONLY)
  target_sources(${target} PRIVATE ${file})
endfunction()

# heddle_unit(TARGET TEMPLATE UNIT OP...): gives TARGET a translation unit with the tile bodies of these ops, written from TEMPLATE
# with @HEADERS@ and @BODIES@ (which include their files) and @ENTRIES@ (which name them). PATH_x is the path of an op's files.
function(heddle_unit target template UNIT)
  foreach(op ${ARGN})
    string(REPLACE "_" ";" words ${op})
    set(args)
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 initial)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${initial} initial)
      string(APPEND args ${initial}${rest})
    endforeach()
    string(APPEND HEADERS "#include \"${PATH_${op}}.h\"\n")
    string(APPEND BODIES "#include \"${PATH_${op}}.cuh\"\n")
    string(APPEND ENTRIES "namespace ${op} {\nextern const BodyEntry<Block> kEntry;\n"
      "constinit const BodyEntry<Block> kEntry = body_entry<Body, ${args}, Block>(\"${op}\");\n}\n")
  endforeach()
  get_filename_component(kind ${template} NAME_WE)
  configure_file(${template} ${CMAKE_BINARY_DIR}/generated/${kind}/${UNIT}.cpp @ONLY)
  target_sources(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated/${kind}/${UNIT}.cpp)
endfunction()

# heddle_bodies(TARGET TEMPLATE MANY): gives TARGET the tile bodies of all ops in units written from TEMPLATE, one of each body, and
# again in a few units of many bodies written from MANY. With HEDDLE_UNITY, small bodies share units of TEMPLATE, too: the compiler
# takes as long for what every unit includes as for one of them. An edit of a body compiles one unit of either kind. An op stays in
# its unit when others are added.
# <build>/generated/op_entries.inc declares the entries of the units, and op_entry_list.inc lists them. Ops that match
# HEDDLE_BODIES_LEFT_OUT have no body in this build, and say so when they are called.
set(HEDDLE_BODIES_LEFT_OUT "" CACHE STRING "Regular expression: ops whose tile bodies are not compiled for the CPU")
function(heddle_bodies target template many)
  heddle_list(ops */@.cpp PATH BODIES)
  set(entries)
  set(entry_list)
  set(units)
  set(many_units)
  foreach(op ${PATH})
    if(HEDDLE_BODIES_LEFT_OUT AND op MATCHES "${HEDDLE_BODIES_LEFT_OUT}")
      continue()
    endif()
    string(APPEND entries "namespace ${op} {\nextern const BodyEntry<Block> kEntry;\n}\n")
    string(APPEND entry_list "${op}::kEntry,\n")
    string(MD5 digest ${op})
    string(SUBSTRING ${digest} 0 4 digest)
    math(EXPR number "0x${digest} % 6")
    list(APPEND many_units ${number})
    list(APPEND many_${number} ${op})
    set(unit ${op})
    file(SIZE ${PROJECT_SOURCE_DIR}/${PATH_${op}}.cuh bytes)
    if(HEDDLE_UNITY AND bytes LESS 1200)
      math(EXPR unit "0x${digest} % 18")
    endif()
    list(APPEND units ${unit})
    list(APPEND unit_${unit} ${op})
  endforeach()
  list(REMOVE_DUPLICATES units)
  foreach(unit ${units})
    heddle_unit(${target} ${template} ${unit} ${unit_${unit}})
  endforeach()
  list(REMOVE_DUPLICATES many_units)
  foreach(unit ${many_units})
    heddle_unit(${target} ${many} ${unit} ${many_${unit}})
  endforeach()
  foreach(part entries entry_list)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/op_${part}.inc CONTENT "${${part}}" @ONLY)
  endforeach()
endfunction()
