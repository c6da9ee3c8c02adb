# Matrices of the benchmarks are the large ones that counters are held against.
target_link_libraries(kernels_counters_test PRIVATE bench_matrices)
# The machine code of kernels on tensor cores and of their twins.
if(TCBOUND_HAVE_CUDA)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME kernels_twins COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/check-twins ${CUDAToolkit_BIN_DIR}
    "$<FILTER:$<TARGET_OBJECTS:tcbound_kernels>,INCLUDE,(fragments|scale/array)/.*_core\\.cu>" COMMAND_EXPAND_LISTS)
  set_tests_properties(kernels_twins PROPERTIES LABELS cpu TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()
# The machine code of the stencils that are advanced by many steps, as linked into their test.
if(TCBOUND_HAVE_CUDA)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME kernels_stencil_sass COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/check-stencil-sass
    $<TARGET_FILE:kernels_stencil_iterated_test> ${CUDAToolkit_BIN_DIR})
  set_tests_properties(kernels_stencil_sass PROPERTIES LABELS cpu TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()
