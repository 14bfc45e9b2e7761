#pragma once

/// The levels of vector instructions that the kernels are compiled for. Include this before foreach_target.h.
///
/// On x86-64: the baseline (SSE), AVX2 with FMA, and AVX-512. On ARM: NEON, which also has fused
/// multiply-adds. Vectors whose length only the processor knows cannot be members of arrays.

/// All levels that Highway prefers to `level`. A better level has a lower bit. Versions of Highway differ in
/// the names of the best ones.
#define MOELAB_BETTER_THAN(level) ((level)-1)

#define HWY_DISABLED_TARGETS \
  (HWY_ARCH_X86 ? (HWY_SSE4 | MOELAB_BETTER_THAN(HWY_AVX3)) : MOELAB_BETTER_THAN(HWY_NEON))
