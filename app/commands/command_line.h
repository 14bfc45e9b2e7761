#pragma once

/// The command line: from arguments to an exit status.

namespace moelab {

/// Parses the arguments, runs the verb and turns every exception into a message and a status: 0 done; 1 done,
/// but a cell failed, (`claims`) a claim is refuted or (`check`) a verdict is not the expected one; 2 bad
/// input, a wrong MOELAB_VECTOR_LEVEL included, whatever the arguments; 3 the environment failed, a standard
/// output that cannot be written included; 130 interrupted.
int run_command_line(int argc, const char* const* argv);

/// Says on stderr that there is not enough memory, once and with none of it; the exit status for that.
/// Threads may call it at the same time.
int tell_lack_of_memory() noexcept;

}  // namespace moelab
