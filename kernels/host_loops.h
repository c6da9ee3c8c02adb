#pragma once

// Before a loop over elements of host arrays that are either the same or do not overlap: each turn is independent of the others.
#if defined(__clang__)
#define TCBOUND_INDEPENDENT_TURNS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TCBOUND_INDEPENDENT_TURNS _Pragma("GCC ivdep")
#else
#define TCBOUND_INDEPENDENT_TURNS
#endif
