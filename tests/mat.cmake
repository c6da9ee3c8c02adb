# These tests reach into what the shared library hides: kernels of their own, counters of their own.
foreach(name mat_compare_test mat_counters_test)
  get_target_property(libraries ${name} LINK_LIBRARIES)
  list(TRANSFORM libraries REPLACE "^tcbound::tcbound$" tcbound_static)
  set_property(TARGET ${name} PROPERTY LINK_LIBRARIES ${libraries})
endforeach()

# PETSc's own tutorials with -dm_mat_type stenciltcbound; skipped where PETSc's sources are not there.
find_package(Python3 COMPONENTS Interpreter)
find_program(TCBOUND_MPICC mpicc)
if(Python3_FOUND AND TCBOUND_MPICC AND PETSC_DIR)
  set(compile ${TCBOUND_MPICC})
  if(TCBOUND_SANITIZE) # their runtime must be the program's
    set(compile "${TCBOUND_MPICC} -fsanitize=${TCBOUND_SANITIZE}")
  endif()
  foreach(n 1 2 4)
    set(name mat_stencil_tutorials)
    if(n GREATER 1)
      set(name ${name}.np${n})
    endif()
    add_test(NAME ${name}
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/mat/run-stencil-tutorials ${PETSC_DIR} "${PETSC_ARCH}"
        $<TARGET_FILE:tcbound> ${n} "${compile}" ${MPIEXEC_EXECUTABLE} --oversubscribe)
    set_tests_properties(${name} PROPERTIES LABELS cpu PROCESSORS ${n} TIMEOUT 900 SKIP_RETURN_CODE 77
      ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}")
  endforeach()
endif()
