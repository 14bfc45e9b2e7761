#pragma once

/// The memory that a run may take, held against what it needs.

namespace moelab {

/// Bytes that this process may still take: the least of what the machine has available, what its control
/// groups (version 1 or 2) leave, and RLIMIT_AS; infinite where none of it can be read.
double available_bytes();

/// Throws EnvironmentError where a run of the scenario's missing cells on so many threads needs more than is
/// available: it says both, how many threads would fit, and `way_out`.
void check_memory(double process_bytes, double cell_bytes, int threads, double available,
                  const char* way_out = ", or --force runs it all the same");

}  // namespace moelab
