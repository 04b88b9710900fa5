# Which tests run again on the emulated GPU.
set(source ${CMAKE_CURRENT_LIST_DIR})
set(folder ${CMAKE_BINARY_DIR}/emulated_gpu)
add_library(emulated_cuda SHARED ${source}/libcuda.cpp)
set_target_properties(emulated_cuda PROPERTIES OUTPUT_NAME cuda VERSION 1 SOVERSION 1)
add_library(emulated_nvrtc SHARED ${source}/libnvrtc.cpp)
set_target_properties(emulated_nvrtc PROPERTIES OUTPUT_NAME nvrtc VERSION 13 SOVERSION 13)
add_library(emulated_nvml SHARED ${source}/libnvidia_ml.cpp)
set_target_properties(emulated_nvml PROPERTIES OUTPUT_NAME nvidia-ml VERSION 1 SOVERSION 1
                      LIBRARY_OUTPUT_DIRECTORY ${folder})
# What is ahead of every device program and what is linked to it, compiled once. The compiler takes the header that it
# finds beside it where flags differ. Compilation is most of the time of these tests: -Og takes two thirds of -O1's.
set(flags -std=c++20 -Og -w -fPIC -fvisibility=hidden -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Descriptors make thread-local variables of libraries fast. Libraries with statics that are unique in the process would
  # never be unloaded.
  list(APPEND flags -mtls-dialect=gnu2 -fno-gnu-unique)
endif()
if(HEDDLE_GOLD)  # linking is a tenth of the time of a program
  set(link -fuse-ld=gold)
endif()
set(ahead ${folder}/ahead/device.h)
add_custom_command(OUTPUT ${ahead}.gch DEPENDS ${source}/device.h ${source}/cuda.h
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}/ahead
                   COMMAND ${CMAKE_COMMAND} -E cat ${source}/device.h ${source}/cuda.h > ${ahead}
                   COMMAND ${CMAKE_CXX_COMPILER} ${flags} -x c++-header ${ahead} -o ${ahead}.gch VERBATIM)
set(device ${folder}/ahead/device.o)
add_custom_command(OUTPUT ${device} DEPENDS ${source}/device.cpp ${source}/device.h
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}/ahead
                   COMMAND ${CMAKE_CXX_COMPILER} ${flags} -O2 -I ${PROJECT_SOURCE_DIR} -c ${source}/device.cpp -o ${device} VERBATIM)
add_custom_target(emulated_ahead DEPENDS ${ahead}.gch ${device})
add_dependencies(emulated_nvrtc emulated_ahead)
list(JOIN flags " " flags)
target_compile_definitions(emulated_nvrtc PRIVATE EMULATED_GPU_SOURCE="${source}" EMULATED_GPU_AHEAD="${ahead}" EMULATED_GPU_DEVICE="${device}"
                           EMULATED_GPU_CXX="${CMAKE_CXX_COMPILER} ${flags}" EMULATED_GPU_LINK="${link}")
set_target_properties(emulated_cuda emulated_nvrtc PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${folder})
target_include_directories(emulated_cuda PRIVATE ${PROJECT_SOURCE_DIR})
# The same driver with a GPU that runs nothing, for scripts/gpu_tests.py.
add_library(still_cuda SHARED EXCLUDE_FROM_ALL ${source}/libcuda.cpp)
set_target_properties(still_cuda PROPERTIES OUTPUT_NAME cuda VERSION 1 SOVERSION 1
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/still_gpu)
target_compile_definitions(still_cuda PRIVATE EMULATED_GPU_STILL=1)
target_include_directories(still_cuda PRIVATE ${PROJECT_SOURCE_DIR})

# What was compiled with another emulator is not taken from the cache.
set(emulator ${source}/device.h ${source}/device.cpp ${source}/cuda.h ${source}/arch.cuh ${source}/cluster.cuh ${source}/libnvrtc.cpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${emulator})
set(digest "")
foreach(file ${emulator})
  file(SHA256 ${file} one)
  string(APPEND digest ${one})
endforeach()
string(SHA256 digest "${digest}")
string(SUBSTRING ${digest} 0 16 digest)

function(add_emulated_test test filter)
  add_dependencies(${test} emulated_cuda emulated_nvrtc)
  add_test(NAME emulated_gpu/${test} COMMAND ${test} --gtest_filter=${filter} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(emulated_gpu/${test} PROPERTIES COST 20 ENVIRONMENT
    "HEDDLE_TEST_SCALE=0.1;LD_LIBRARY_PATH=${folder};HEDDLE_NVRTC=${folder};HEDDLE_CACHE=${folder}/cache_${digest}")
endfunction()
get_property(python_tests GLOBAL PROPERTY HEDDLE_PYTHON_GPU_TESTS)
if(python_tests)
  add_test(NAME emulated_gpu/python COMMAND ${python_tests})
  set_tests_properties(emulated_gpu/python PROPERTIES COST 90 ENVIRONMENT
    "PYTHONPATH=${CMAKE_BINARY_DIR}/python;LD_LIBRARY_PATH=${folder};HEDDLE_NVRTC=${folder};HEDDLE_CACHE=${folder}/cache_${digest}")
endif()
# Bodies are the same in each frame, and op_call_test runs those that need no step record. These are the others, and some
# that stand for all in the frames of the megakernel and of launches: each takes another path there, or models decode
# with it.
set(in_frames "")
foreach(op linear attention expert_linear rms_norm sample add)
  string(APPEND in_frames "*/${op}_megakernel:*/${op}_launches:")
endforeach()
foreach(op attention_merge embedding embedding_backward expert_bias gather_rows kv_append position_gain rope_table
           sample_parts head_linear delta_rule mamba2_scan short_convolution rope rope_rows route router expert_sum gated_activation head_norm softmax argmax copy column_sum
           reduce)
  string(APPEND in_frames "*/${op}_megakernel:")
endforeach()
add_emulated_test(op_harness_test "${in_frames}")
add_emulated_test(op_call_test "*_cuda*")
add_emulated_test(op_call_gpu_test "*")
add_emulated_test(adamw_gpu_test "*")
add_emulated_test(devices_gpu_test "*")
add_emulated_test(transfer_gpu_test "*")
# Kernels of rows are alike, and so are matmul's and bmm's: some stand for all.
add_emulated_test(config_test "*_cuda*:*_launches*-*activation*_cuda:*gated*_cuda:*adamw*_cuda:*rms_norm*_cuda:*softmax_backward*_cuda:*rope_backward*_cuda:*cross_entropy_backward*_cuda:*layer_norm_call_cuda:*layer_norm_residual*_cuda:*copy_call_cuda:*column_sum*_cuda:*reduce_call_cuda:*reduce_dim_backward*_cuda:*head_norm*_cuda:*bmm_*")
add_emulated_test(attention_cut_test "*/launches:*/megakernel")
add_emulated_test(executors_test "*/megakernel_*:Panels.*:*Specialised*")
add_emulated_test(many_tokens_test "*/megakernel*:*InOrder/launches:*HostSaysSo/launches")
add_emulated_test(not_finite_test "*/megakernel")
add_emulated_test(model_golden_test "*Logits*llama3_tiny:*Forms*llama3_tiny:*Greedy*gpt2_tiny:*Greedy*deepseek_v3_bf16")
add_emulated_test(coded_weights_test "*CodedWeightsOn*")
add_emulated_test(mixture_test "*Long*qwen3_moe_megakernel")
add_emulated_test(recurrent_test "*Host*qwen3_5_tiny_megakernel")
# Runs the program there by itself.
add_dependencies(gpu_command_test emulated_cuda emulated_nvrtc emulated_nvml heddle)
target_compile_definitions(gpu_command_test PRIVATE HEDDLE_EMULATED_GPU="${folder}"
                           HEDDLE_EMULATED_CACHE="${folder}/cache_${digest}")
