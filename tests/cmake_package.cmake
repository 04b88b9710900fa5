# Installs what other projects need, builds examples/cmake_op with it alone, and runs that:
# cmake -DBUILD=build/release -DSOURCE=. -DCXX=g++ -P cmake_package.cmake
set(folder ${BUILD}/cmake_package)
file(REMOVE_RECURSE ${folder})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --component devel --prefix ${folder}/heddle)
file(COPY ${SOURCE}/examples/cmake_op DESTINATION ${folder})
run(${CMAKE_COMMAND} -S ${folder}/cmake_op -B ${folder}/build -DCMAKE_PREFIX_PATH=${folder}/heddle
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=-Wall -Wextra")
run(${CMAKE_COMMAND} --build ${folder}/build)
run(${folder}/build/cmake_op)
file(REMOVE_RECURSE ${folder})
