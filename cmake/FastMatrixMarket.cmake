# The Matrix Market reader of examples/compare: header-only, put there by tools/setup-fast-matrix-market. Defines
# fast_matrix_market::fast_matrix_market.
set(FAST_MATRIX_MARKET_DIR "$ENV{FAST_MATRIX_MARKET_DIR}" CACHE PATH
  "fast_matrix_market's C++ folder (the one that holds include/), as tools/setup-fast-matrix-market prints it")
if(NOT EXISTS "${FAST_MATRIX_MARKET_DIR}/include/fast_matrix_market/fast_matrix_market.hpp")
  message(FATAL_ERROR "FAST_MATRIX_MARKET_DIR=\"${FAST_MATRIX_MARKET_DIR}\" holds no include/fast_matrix_market/"
    "fast_matrix_market.hpp: set it to what tools/setup-fast-matrix-market prints, or build with -DTCBOUND_EXAMPLES=OFF")
endif()
if(NOT TARGET fast_matrix_market::fast_matrix_market)
  find_package(Threads REQUIRED)
  add_library(fast_matrix_market INTERFACE)
  add_library(fast_matrix_market::fast_matrix_market ALIAS fast_matrix_market)
  target_include_directories(fast_matrix_market SYSTEM INTERFACE
    ${FAST_MATRIX_MARKET_DIR}/include ${FAST_MATRIX_MARKET_DIR}/dependencies/fast_float/include)
  # gcc's from_chars for integers stays on its line; the library's fallback, strtoll, would read on into the next one.
  target_compile_definitions(fast_matrix_market INTERFACE FMM_USE_FAST_FLOAT FMM_FROM_CHARS_INT_SUPPORTED)
  target_link_libraries(fast_matrix_market INTERFACE Threads::Threads)
endif()
