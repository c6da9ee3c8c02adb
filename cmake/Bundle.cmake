# `bundle`: one folder with everything a GPU node needs to run the tests and benchmarks (tools/make-bundle lists it).
get_property(targets GLOBAL PROPERTY TCBOUND_GPU_TEST_TARGETS)
get_property(ranks GLOBAL PROPERTY TCBOUND_GPU_TEST_RANKS)
get_property(programs GLOBAL PROPERTY TCBOUND_PROGRAMS)
set(binaries "")
foreach(target ${targets} ${programs})
  list(APPEND binaries $<TARGET_FILE:${target}>)
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/bundle-binaries CONTENT "$<JOIN:${binaries},\n>\n")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/bundle-gpu-tests CONTENT "$<JOIN:${ranks},\n>\n")
add_custom_target(bundle
  COMMAND ${PROJECT_SOURCE_DIR}/tools/make-bundle ${CMAKE_BINARY_DIR} $<TARGET_FILE:tcbound>
  DEPENDS tcbound ${targets} ${programs}
  VERBATIM USES_TERMINAL)
