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
