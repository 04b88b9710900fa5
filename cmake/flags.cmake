# The compiler flags of all of heddle's targets. Projects that find heddle installed (package.cmake) have flags of their own.
add_library(heddle_flags INTERFACE)
target_compile_options(heddle_flags INTERFACE
  "$<BUILD_INTERFACE:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-Wno-missing-field-initializers>")
# Nobody replaces a function of heddle at load time, so that the compiler may put functions into one another.
target_compile_options(heddle_flags INTERFACE $<BUILD_INTERFACE:-fno-semantic-interposition>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports members of moved-from variants as maybe uninitialised (GCC bug 105562), overlapping copies in
  # "text" + std::string (105651), and at -O2 copies of 2^63 bytes and more where a string's length is not known.
  target_compile_options(heddle_flags INTERFACE
    "$<BUILD_INTERFACE:-Wno-maybe-uninitialized;-Wno-restrict;-Wno-stringop-overread;-Wno-stringop-overflow>")
  if(HEDDLE_UNITY)  # without a collection of garbage below 1 GB, a file of many takes 7 % less time
    target_compile_options(heddle_flags INTERFACE "$<BUILD_INTERFACE:SHELL:--param ggc-min-heapsize=1000000>")
  endif()
endif()
if(HEDDLE_WERROR)
  target_compile_options(heddle_flags INTERFACE $<BUILD_INTERFACE:-Werror>)
endif()
if(HEDDLE_DEBUG_CHECKS)
  target_compile_definitions(heddle_flags INTERFACE HEDDLE_DEBUG_CHECKS=1)
endif()
if(HEDDLE_SANITIZE)
  target_compile_definitions(heddle_flags INTERFACE HEDDLE_SANITIZED=1)  # limits of time do not count
  # Texts of messages are checked when they are used: another build has checked them as it compiled.
  target_compile_definitions(heddle_flags INTERFACE FMT_CONSTEVAL=)
  target_compile_options(heddle_flags INTERFACE -fsanitize=${HEDDLE_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  if(HEDDLE_SANITIZE MATCHES "address,undefined")
    # The address sanitizer sees the accesses that the first three would warn of; without them bodies compile four times as fast.
    # The others take a fifth of the compiler's time, and only these libraries read what was written as another type.
    set(readers heddle_base heddle_text heddle_model heddle_engine heddle_backend_cpu)
    target_compile_options(heddle_flags INTERFACE -fno-sanitize=null,object-size,pointer-overflow,vptr,function
      "$<$<NOT:$<IN_LIST:$<TARGET_PROPERTY:NAME>,${readers}>>:-fno-sanitize=alignment>")
    # Outside of bodies, which run most, a call instead of code at each access saves a third of the compiler's time.
    target_compile_options(heddle_flags INTERFACE
      "$<$<AND:$<CXX_COMPILER_ID:Clang>,$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,heddle_backend_cpu>>>:SHELL:-mllvm -asan-instrumentation-with-call-threshold=0>")
  endif()
  # LLVM's linker takes a fifth of the time for a program with a sanitizer's debug information.
  target_link_options(heddle_flags INTERFACE -fsanitize=${HEDDLE_SANITIZE} $<$<CXX_COMPILER_ID:Clang>:-fuse-ld=lld>)
endif()
option(HEDDLE_FUZZ "Build the libFuzzer programs (*_fuzz.cpp); needs clang" OFF)
if(HEDDLE_FUZZ)
  target_compile_options(heddle_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_include_directories(heddle_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_link_libraries(heddle_flags INTERFACE fmt::fmt Threads::Threads)
