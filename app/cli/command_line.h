#pragma once

/// The command line: from words to an exit status.

#include <mutex>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace moelab {

/// Parses the words, runs the verb and turns every exception into a message and a status. 0: done. 1: done,
/// but a cell failed, a claim is refuted (`claims`) or a verdict is not the expected one (`check`). 2: bad
/// input; a wrong MOELAB_VECTOR_LEVEL is bad input of every verb. 3: the environment failed; so does a
/// standard output that cannot be written. 130: interrupted.
int run_command_line(int argc, const char* const* argv);

/// Reports on stderr, once and without allocating, that memory is exhausted. Returns the exit status for
/// that. Threads may call it at the same time.
int tell_lack_of_memory() noexcept;

/// While it lives, text written to `stream` passes through visible_text. No text of a scenario, file name or
/// message can then command the terminal; JSON stays the same JSON. Threads may share it.
class VisibleOutput : public std::streambuf {
 public:
  explicit VisibleOutput(std::ostream& stream);
  ~VisibleOutput() override;
  VisibleOutput(const VisibleOutput&) = delete;
  VisibleOutput& operator=(const VisibleOutput&) = delete;

 protected:
  int_type overflow(int_type letter) override;
  std::streamsize xsputn(const char* letters, std::streamsize count) override;
  int sync() override;

 private:
  bool write(std::string_view text);
  bool pass_on(std::string_view text);
  bool pass_on_rest();

  std::ostream& stream_;
  std::streambuf* target_;
  std::mutex mutex_;
  std::string rest_;  ///< the first bytes of a character whose other bytes are not written yet
};

}  // namespace moelab
