# tcbound-calibrate: its steps in process (calibrate/*_test.cxx), the command as a user runs it, and the machine code of its loops.
if(NOT TCBOUND_APPS)
  return()
endif()
find_package(nlohmann_json REQUIRED)
foreach(name device host report output_file)
  target_link_libraries(calibrate_${name}_test PRIVATE tcbound_calibration nlohmann_json::nlohmann_json)
endforeach()

add_test(NAME calibrate_command COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/calibrate/run-calibrate $<TARGET_FILE:tcbound-calibrate>
  $<TARGET_FILE:tcbound-model>)
set_tests_properties(calibrate_command PROPERTIES LABELS cpu TIMEOUT 300)

if(TCBOUND_HAVE_CUDA)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME calibrate_sass COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/calibrate/check-sass
    $<TARGET_FILE:tcbound-calibrate> ${CUDAToolkit_BIN_DIR})
  set_tests_properties(calibrate_sass PROPERTIES LABELS cpu TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()
