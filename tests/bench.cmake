# The benchmark's matrices, and runs of the benchmarks on small ones: right results and a whole report, no judgement of
# speed.
target_link_libraries(bench_matrices_test PRIVATE bench_matrices)
if(TCBOUND_BENCH)
  function(tcbound_bench_test name expected)
    add_test(NAME bench_spmv.${name} COMMAND bench_spmv ${ARGN})
    set_tests_properties(bench_spmv.${name} PROPERTIES LABELS cpu TIMEOUT 300 PASS_REGULAR_EXPRESSION "${expected}"
      FAIL_REGULAR_EXPRESSION "FAILED" ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}")
  endfunction()
  tcbound_bench_test(quick "geometric mean of 22 ratios: " -host -quick -repeats 3)
  tcbound_bench_test(list "poisson7-64.*banded-empty.*spmv/csr/host" -list)
  tcbound_bench_test(unknown_case "there is no case poisson7; the cases are poisson7-64, " -host -cases poisson7)
  tcbound_bench_test(unknown_kernel "there is no kernel csr; the kernels are spmv/csr/host, " -host -kernels csr)
  tcbound_bench_test(unknown_option "unknown option -case; the options are -cases, " -host -case mc2depi)
  add_test(NAME bench_log_overhead COMMAND bench_log_overhead -n 12 -iterations 20 -repeats 3 -backend host)
  set_tests_properties(bench_log_overhead PROPERTIES LABELS cpu TIMEOUT 300 ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}"
    PASS_REGULAR_EXPRESSION "CG.Jacobi iteration with a log +spmv/[a-z]+/host, PETSc's log and tcbound's +[0-9.]+ us +[-+0-9.]+ % over PETSc's log\n")
  add_test(NAME bench_spmv.output COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/bench/check-output $<TARGET_FILE:bench_spmv>
    ${PROJECT_SOURCE_DIR}/tools/results-table)
  set_tests_properties(bench_spmv.output PROPERTIES LABELS cpu TIMEOUT 300 ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}")
endif()
