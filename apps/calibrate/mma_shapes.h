#pragma once

// MMA instructions as PTX's mma.sync spells them (PTX ISA, "Matrix multiply-accumulate operation using mma instruction"),
// with the registers of one thread of the warp: a of A, b of B, c of C = D.

#include <cstdint>

namespace tcbound::calibrate {

struct Fp64 {
  using Operand = double;
  using Sum = double;
  static constexpr const char *type = "fp64", *label = "FP64";
  // +-[1, 2) with a random mantissa.
  __device__ static Operand operand(std::uint32_t random) {
    return __hiloint2double(static_cast<int>((random & 0x800fffffU) | 0x3ff00000U), static_cast<int>(random * 0x9e3779b9U));
  }
};

// The low-precision types keep one or two elements of +-[1, 2) a 32-bit register and add in FP32.
template <std::uint32_t random_bits, std::uint32_t one> struct Packed {
  using Operand = std::uint32_t;
  using Sum = float;
  __device__ static Operand operand(std::uint32_t random) { return (random & random_bits) | one; }
};
struct Fp16 : Packed<0x83ff83ffU, 0x3c003c00U> {
  static constexpr const char *type = "fp16", *label = "FP16";
};
struct Bf16 : Packed<0x807f807fU, 0x3f803f80U> {
  static constexpr const char *type = "bf16", *label = "BF16";
};
struct Tf32 : Packed<0x807fe000U, 0x3f800000U> {
  static constexpr const char *type = "tf32", *label = "TF32";
};

template <class Type_, int m_, int n_, int k_, int a_, int b_, int chains_, int compute_> struct Shape {
  using Type = Type_;
  using Operand = typename Type::Operand;
  using Sum = typename Type::Sum;
  static constexpr int m = m_, n = n_, k = k_;
  static constexpr int a = a_, b = b_, c = m * n / 32;
  static constexpr int chains = chains_;   // independent accumulators of a thread, to hide the instruction's latency
  static constexpr int compute = compute_; // the least compute capability, times 10, that has it
};

struct Fp64M8n8k4 : Shape<Fp64, 8, 8, 4, 1, 1, 8, 80> {
  __device__ static void multiply(Sum (&d)[c], const Operand (&x)[a], const Operand (&y)[b]) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(x[0]), "d"(y[0]));
  }
};

// The larger FP64 shapes exist from compute capability 9.0 on; in code for older devices these do nothing and are not run.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TCBOUND_SM90_MMA 1
#endif

struct Fp64M16n8k4 : Shape<Fp64, 16, 8, 4, 2, 1, 4, 90> {
  __device__ static void multiply(Sum (&d)[c], const Operand (&x)[a], const Operand (&y)[b]) {
#ifdef TCBOUND_SM90_MMA
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(x[0]), "d"(x[1]), "d"(y[0]));
#endif
  }
};

struct Fp64M16n8k8 : Shape<Fp64, 16, 8, 8, 4, 2, 4, 90> {
  __device__ static void multiply(Sum (&d)[c], const Operand (&x)[a], const Operand (&y)[b]) {
#ifdef TCBOUND_SM90_MMA
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(x[0]), "d"(x[1]), "d"(x[2]), "d"(x[3]), "d"(y[0]), "d"(y[1]));
#endif
  }
};

struct Fp64M16n8k16 : Shape<Fp64, 16, 8, 16, 8, 4, 4, 90> {
  __device__ static void multiply(Sum (&d)[c], const Operand (&x)[a], const Operand (&y)[b]) {
#ifdef TCBOUND_SM90_MMA
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
        "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(x[0]), "d"(x[1]), "d"(x[2]), "d"(x[3]), "d"(x[4]), "d"(x[5]), "d"(x[6]), "d"(x[7]), "d"(y[0]), "d"(y[1]),
          "d"(y[2]), "d"(y[3]));
#endif
  }
};

#define TCBOUND_LOW_PRECISION_MMA(spelling) \
  __device__ static void multiply(Sum(&d)[c], const Operand(&x)[a], const Operand(&y)[b]) { \
    asm("mma.sync.aligned." spelling " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1])); \
  }

struct Fp16M16n8k16 : Shape<Fp16, 16, 8, 16, 4, 2, 8, 80> {
  TCBOUND_LOW_PRECISION_MMA("m16n8k16.row.col.f32.f16.f16.f32")
};
struct Bf16M16n8k16 : Shape<Bf16, 16, 8, 16, 4, 2, 8, 80> {
  TCBOUND_LOW_PRECISION_MMA("m16n8k16.row.col.f32.bf16.bf16.f32")
};
struct Tf32M16n8k8 : Shape<Tf32, 16, 8, 8, 4, 2, 8, 80> {
  TCBOUND_LOW_PRECISION_MMA("m16n8k8.row.col.f32.tf32.tf32.f32")
};

#undef TCBOUND_LOW_PRECISION_MMA

// Those with less k, for products that have no use for more.
#define TCBOUND_SHORT_LOW_PRECISION_MMA(spelling) \
  __device__ static void multiply(Sum(&d)[c], const Operand(&x)[a], const Operand(&y)[b]) { \
    asm("mma.sync.aligned." spelling " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
        : "r"(x[0]), "r"(x[1]), "r"(y[0])); \
  }

struct Bf16M16n8k8 : Shape<Bf16, 16, 8, 8, 2, 1, 8, 80> {
  TCBOUND_SHORT_LOW_PRECISION_MMA("m16n8k8.row.col.f32.bf16.bf16.f32")
};
struct Tf32M16n8k4 : Shape<Tf32, 16, 8, 4, 2, 1, 8, 80> {
  TCBOUND_SHORT_LOW_PRECISION_MMA("m16n8k4.row.col.f32.tf32.tf32.f32")
};

#undef TCBOUND_SHORT_LOW_PRECISION_MMA

} // namespace tcbound::calibrate
