# The model's tests need its sources, which the archive of kernels does not have.
foreach(name model_machine_test model_bounds_test model_present_test model_verdict_test model_work_counts_test)
  target_link_libraries(${name} PRIVATE tcbound_model)
endforeach()

# The command, by what it prints and by its exit status.
if(TCBOUND_APPS)
  function(tcbound_model_test name expected)
    add_test(NAME model_command.${name} COMMAND tcbound-model ${ARGN})
    set_tests_properties(model_command.${name} PROPERTIES LABELS cpu TIMEOUT 60 PASS_REGULAR_EXPRESSION "${expected}")
  endfunction()
  set(data ${CMAKE_CURRENT_SOURCE_DIR}/model)
  tcbound_model_test(machines "H200 +m8n8k4 fp64 +3.31e.13 +FLOP/s +measured" machines)
  tcbound_model_test(machines_csv "H200,m8n8k4 fp64,3.31e.13,FLOP/s,measured" machines --format csv)
  tcbound_model_test(memory_bound "GH200 +2d49pt .*6.125 +8.5 .*memory-bound, compliant" bound --machine GH200
    --kernel 2d49pt)
  tcbound_model_test(compute_bound "compute-bound, out of scope" bound --machine A100-80GB --kernel 2d49pt)
  tcbound_model_test(fused "18.38 .*compute-bound, out of scope.*Tensor cores can win" bound --machine H200 --kernel 2d49pt
    --steps 3 --mma m16n8k16)
  tcbound_model_test(rho "\"alpha\": 0.25" bound --machine TwiceAsFast --kernel csr27 --rho 8 --format json --machine-file
    ${data}/twice_as_fast.json)
  tcbound_model_test(table "B200 +scale .* 1 +memory-bound, compliant" table)
  tcbound_model_test(table_csv "B200,scale,fp64,1,0.0625,4.805,0.01301,1,1,[^,]*,1,1,\"memory-bound, compliant\"" table
    --format csv)
  tcbound_model_test(unknown_machine "no machine 'H20'; did you mean H200. Valid: V100, " bound --machine H20 --kernel scale)
  tcbound_model_test(unknown_kernel "no kernel '2d49'; did you mean 2d49pt. Valid: scale, " bound --machine H200
    --kernel 2d49)
  tcbound_model_test(unknown_command "no command 'tabel'; did you mean table. Valid: machines, bound, table" tabel)
  tcbound_model_test(unknown_format "no format 'xml'.*Valid: text, csv, json" table --format xml)
  tcbound_model_test(unknown_figure "V100: the fp64 peak of unit tensor_core is unknown" bound --machine V100 --kernel scale)
  foreach(case "--machine;H20;--kernel;scale" "--machine;V100;--kernel;scale" "--machine;H200;--kernel;scale;--steps;0"
      "--machine;H200;--kernel;scale;--machine-file;missing.json")
    string(REGEX REPLACE "[^A-Za-z0-9]+" "_" name "${case}")
    add_test(NAME model_command.fails${name} COMMAND tcbound-model bound ${case})
    set_tests_properties(model_command.fails${name} PROPERTIES LABELS cpu TIMEOUT 60 WILL_FAIL TRUE)
  endforeach()
endif()
