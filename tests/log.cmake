# The log's tests call what the shared library hides: they link its objects instead, so that there is only one log.
foreach(name log_log_test log_report_test)
  get_target_property(libraries ${name} LINK_LIBRARIES)
  list(TRANSFORM libraries REPLACE "^tcbound::tcbound$" tcbound_static)
  set_property(TARGET ${name} PROPERTY LINK_LIBRARIES ${libraries})
endforeach()

# Several PetscInitialize() in one process need a main() of their own, around which MPI lives.
set(name log_rounds)
add_executable(${name} log/rounds.cxx)
target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(${name} PRIVATE tcbound_warnings GTest::gtest tcbound_static)
add_test(NAME ${name} COMMAND ${name})
add_test(NAME ${name}.np2 COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe -n 2 $<TARGET_FILE:${name}>)
set_tests_properties(${name} ${name}.np2 PROPERTIES LABELS cpu TIMEOUT 600 ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}")
