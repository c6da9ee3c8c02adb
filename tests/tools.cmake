# Scripts of tools/. The pictures need matplotlib; without it the test says so and is skipped.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  foreach(plot roofline_plot scale_plot)
    add_test(NAME tools_${plot} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/${plot}_test
      ${PROJECT_SOURCE_DIR}/tools/${plot})
    set_tests_properties(tools_${plot} PROPERTIES LABELS cpu TIMEOUT 300 SKIP_RETURN_CODE 77)
  endforeach()
endif()
