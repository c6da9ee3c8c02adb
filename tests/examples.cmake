# The tests of examples/compare: its reader and problems in process (examples/compare_test.cxx) and the program as a user runs
# it (examples/run-compare).
if(NOT TCBOUND_EXAMPLES)
  return()
endif()
if(TARGET examples_compare_test)
  find_package(ZLIB REQUIRED)
  foreach(part options problems elasticity)
    target_sources(examples_compare_test PRIVATE ${PROJECT_SOURCE_DIR}/examples/compare/${part}.cxx)
  endforeach()
  target_link_libraries(examples_compare_test PRIVATE compare_files ZLIB::ZLIB)
endif()
# A plain PETSc program that loads the plugin; the log is the plugin's.
add_test(NAME examples_poisson COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe -n 2 $<TARGET_FILE:poisson> -n 20 -variable
  -ksp_type cg -pc_type jacobi -ksp_rtol 1e-10 -dll_append $<TARGET_FILE:tcbound> -dm_mat_type aijtcbound -mat_tcbound_backend host
  -mat_tcbound_compare -log_view)
set_tests_properties(examples_poisson PROPERTIES LABELS cpu PROCESSORS 2 TIMEOUT 300 ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}"
  PASS_REGULAR_EXPRESSION "20.3 points: [0-9]+ iterations .CONVERGED_RTOL., .b - A x. / .b. = [0-9.]+e-1[0-9].*tcbound: roofline of each kernel")
foreach(n 1 2 3)
  if(n EQUAL 1)
    set(suffix "")
  else()
    set(suffix .np${n})
  endif()
  add_test(NAME examples_compare${suffix}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/examples/run-compare $<TARGET_FILE:compare> ${n} ${MPIEXEC_EXECUTABLE} --oversubscribe)
  set_tests_properties(examples_compare${suffix} PROPERTIES LABELS cpu PROCESSORS ${n} TIMEOUT 600
    ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}")
endforeach()
