# The machine code of the stencils that are advanced by many steps, as linked into their test.
if(TCBOUND_HAVE_CUDA)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME kernels_stencil_sass COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/check-stencil-sass
    $<TARGET_FILE:kernels_stencil_iterated_test> ${CUDAToolkit_BIN_DIR})
  set_tests_properties(kernels_stencil_sass PROPERTIES LABELS cpu TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()
