#pragma once

/// The one place through which all that the program prints passes.

#include <mutex>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace moelab {

/// While it lives, what is written to `stream` arrives as visible_text of it, so that no text of a scenario,
/// a file name or a message commands the terminal; JSON stays the same JSON. It may be used by several
/// threads.
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
  std::string rest_;  ///< the beginning of a character whose other bytes are still to come
};

}  // namespace moelab
