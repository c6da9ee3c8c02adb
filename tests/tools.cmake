# Scripts of tools/. The pictures need matplotlib; without it the test says so and is skipped.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME tools_roofline_plot COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/roofline_plot_test
    ${PROJECT_SOURCE_DIR}/tools/roofline_plot)
  set_tests_properties(tools_roofline_plot PROPERTIES LABELS cpu TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
