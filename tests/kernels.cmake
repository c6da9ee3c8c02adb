# Matrices of the benchmarks are the large ones that counters are held against.
target_link_libraries(kernels_counters_test PRIVATE bench_matrices)
