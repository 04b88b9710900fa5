# What another project needs of heddle: its libraries, its headers, and find_package(heddle) with the target
# heddle::heddle. `cmake --install build/release --component devel --prefix PREFIX` makes it; examples/cmake_op uses it.
set(libraries base ir kit trace ops schedule tune backend_cpu backend_cuda engine text model session)
list(TRANSFORM libraries PREPEND heddle_ OUTPUT_VARIABLE targets)
foreach(library ${libraries})
  set_target_properties(heddle_${library} PROPERTIES EXPORT_NAME ${library})
endforeach()
set_target_properties(heddle_flags PROPERTIES EXPORT_NAME flags)
install(TARGETS heddle_flags ${targets} EXPORT heddle
        ARCHIVE DESTINATION lib/heddle COMPONENT devel EXCLUDE_FROM_ALL)
install(EXPORT heddle NAMESPACE heddle:: FILE heddle-targets.cmake DESTINATION lib/cmake/heddle COMPONENT devel
        EXCLUDE_FROM_ALL)
install(DIRECTORY heddle DESTINATION include COMPONENT devel EXCLUDE_FROM_ALL FILES_MATCHING REGEX "\\.(h|cuh)$")
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/heddle-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/heddle-config.cmake ${CMAKE_BINARY_DIR}/generated/heddle-config-version.cmake
        DESTINATION lib/cmake/heddle COMPONENT devel EXCLUDE_FROM_ALL)
