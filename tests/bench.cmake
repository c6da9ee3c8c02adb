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
  # Each with the text that it must print; FAILED and DISAGREE must not stand there.
  function(tcbound_vector_bench_test name program expected)
    add_test(NAME bench_${program}.${name} COMMAND bench_${program} ${ARGN})
    set_tests_properties(bench_${program}.${name} PROPERTIES LABELS cpu TIMEOUT 300 PASS_REGULAR_EXPRESSION "${expected}"
      FAIL_REGULAR_EXPRESSION "FAILED;DISAGREE" ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}")
  endfunction()
  tcbound_vector_bench_test(quick scale "quick-scale-1MiB +[0-9.]+ us" -host -quick -repeats 3)
  tcbound_vector_bench_test(unaligned scale "quick-scale-1MiB-unaligned +[0-9.]+ us" -host -quick -repeats 3 -offset 1 -offset_x 2)
  tcbound_vector_bench_test(unknown_option scale "unknown option -size; the options are -least, " -host -size 3)
  tcbound_vector_bench_test(quick vectors "quick-20 +VecMAXPY-30 +[0-9.]+ us" -host -quick -repeats 3)
  tcbound_vector_bench_test(unknown_case vectors "there is no case 65; the cases are 64, 160, 256" -host -cases 65)
  tcbound_vector_bench_test(quick smoother "quick-poisson27-160 +stenciltcbound, tcboundsweep, auto a pass +[0-9.]+ us" -host -quick -repeats 3)
  tcbound_vector_bench_test(unknown_case smoother "there is no case mc2depi; the cases are poisson7-256, " -host -cases mc2depi)
  # Operations of vectors stand in the log as those of matrices do.
  tcbound_vector_bench_test(log vectors "VecMDot +Vec +reduce/array/host.*memory-bound.*VecScale +Vec +scale/array/host" -host -quick
    -repeats 1 -log_view)
  tcbound_vector_bench_test(log smoother "MatRelax +[^ ]+ +stencil/iterated/host" -host -quick -repeats 1 -log_view)
  add_test(NAME bench_log_overhead COMMAND bench_log_overhead -n 12 -iterations 20 -repeats 3 -backend host)
  set_tests_properties(bench_log_overhead PROPERTIES LABELS cpu TIMEOUT 300 ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}"
    PASS_REGULAR_EXPRESSION "CG.Jacobi iteration with a log +spmv/[a-z]+/host, PETSc's log and tcbound's +[0-9.]+ us +[-+0-9.]+ % over PETSc's log\n")
  add_test(NAME bench_spmv.output COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/bench/check-output $<TARGET_FILE:bench_spmv>
    ${PROJECT_SOURCE_DIR}/tools/results-table)
  set_tests_properties(bench_spmv.output PROPERTIES LABELS cpu TIMEOUT 300 ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}")

  # bench/stencil: every kernel of the host, checked against plain steps and bands of lines.
  add_test(NAME bench_stencil.quick COMMAND bench_stencil -host -quick -repeats 1 -cases 2d9pt-quick,star2d3r-quick,3d17pt-quick)
  set_tests_properties(bench_stencil.quick PROPERTIES LABELS cpu TIMEOUT 300 PASS_REGULAR_EXPRESSION "3 results, 0 failed"
    FAIL_REGULAR_EXPRESSION "FAILED" ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}")
  add_test(NAME bench_stencil.relaxation COMMAND bench_stencil -host -quick -repeats 1 -cases relax-3d7pt-quick,relax-2d9pt-quick)
  set_tests_properties(bench_stencil.relaxation PROPERTIES LABELS cpu TIMEOUT 300 PASS_REGULAR_EXPRESSION
    "stencil/iterated/host:from-0 +4 .*2 results, 0 failed" FAIL_REGULAR_EXPRESSION "FAILED" ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}")
  add_test(NAME bench_stencil.unknown_case COMMAND bench_stencil -host -cases 2d5pt)
  set_tests_properties(bench_stencil.unknown_case PROPERTIES LABELS cpu TIMEOUT 300
    PASS_REGULAR_EXPRESSION "there is no case 2d5pt; the cases are 2d5pt-10208, 2d5pt-odd, " ENVIRONMENT "${TCBOUND_TEST_ENVIRONMENT}")
endif()
