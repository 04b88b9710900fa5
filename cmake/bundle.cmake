# The bundle: the program, every shared library that it needs except the C library, models and device sources,
# in one folder that runs wherever glibc is new enough. `make bundle` installs this component and tries it.
# The build has the same run path, so that installing need not rewrite the file.
set_target_properties(heddle PROPERTIES INSTALL_RPATH "$ORIGIN/lib" BUILD_WITH_INSTALL_RPATH ON)
# With the older tag the path also applies to the libraries' own libraries.
target_link_options(heddle PRIVATE -Wl,--disable-new-dtags)

install(TARGETS heddle RUNTIME DESTINATION . COMPONENT bundle EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION . COMPONENT bundle EXCLUDE_FROM_ALL)
install(DIRECTORY models/storyteller DESTINATION models COMPONENT bundle EXCLUDE_FROM_ALL PATTERN make EXCLUDE)
# Files that a device compiler reads: tile bodies and the headers that they include.
install(DIRECTORY heddle DESTINATION include COMPONENT bundle EXCLUDE_FROM_ALL FILES_MATCHING REGEX "\\.(h|cuh)$")

install(CODE "set(program \"$<TARGET_FILE:heddle>\")" COMPONENT bundle EXCLUDE_FROM_ALL)
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${program}
       RESOLVED_DEPENDENCIES_VAR libraries UNRESOLVED_DEPENDENCIES_VAR missing
       PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|pthread|dl|rt)\\.so")
  if(missing)
    message(FATAL_ERROR "bundle: libraries not found: ${missing}")
  endif()
  foreach(library ${libraries})
    file(INSTALL ${library} DESTINATION ${CMAKE_INSTALL_PREFIX}/lib TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN)
    # Each library comes with its licence, which Debian keeps by package.
    file(REAL_PATH ${library} file)
    execute_process(COMMAND dpkg-query --search ${file} OUTPUT_VARIABLE owner ERROR_QUIET)
    string(REGEX REPLACE ":.*" "" package "${owner}")
    if(package AND EXISTS /usr/share/doc/${package}/copyright)
      file(INSTALL /usr/share/doc/${package}/copyright DESTINATION ${CMAKE_INSTALL_PREFIX}/licenses
           RENAME ${package})
    endif()
  endforeach()
]] COMPONENT bundle EXCLUDE_FROM_ALL)
