#pragma once

namespace tcbound::csr {

// The first position in [begin, end) of an ascending array whose element is not below `value`.
template <class T, class Index, class Value>
constexpr Index lower_bound(const T *ascending, Index begin, Index end, Value value) {
  while (begin < end) {
    const Index middle = begin + (end - begin) / 2;
    if (ascending[middle] < value)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

} // namespace tcbound::csr
