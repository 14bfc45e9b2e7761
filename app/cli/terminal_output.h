#pragma once

/// Answers on a terminal: words of verdicts in colour, lines that end at words, and a pager for long answers.

#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace moelab {

/// Gives words that report a result their colour: "reproduced" green, "refuted" red, "inconclusive" yellow.
/// In an error or a note, only the begin has a colour. A word counts at the begin of a line, and after a
/// number, a colon or the columns of a table.
std::string painted(const std::string& line);

/// Breaks a line at spaces so that no part is wider than `width` characters. Further parts are indented by
/// two more spaces than the line. Columns of a table stand at least two spaces apart. There the parts stand
/// below the last column, or a column begins a new line. Words that are too wide stay whole.
std::string wrapped(const std::string& line, std::size_t width);

/// While it lives, text written to `stream` reaches the terminal with colours and line breaks.
class TerminalOutput : public std::streambuf {
 public:
  /// With `is_paged`, the text is held back until the end. If it is then longer than the screen, it goes
  /// through the program in PAGER ("less -FRX" if it is unset).
  TerminalOutput(std::ostream& stream, int descriptor, bool is_paged);
  /// Writes what is held back. Errors of a terminal are ignored.
  ~TerminalOutput() override;
  TerminalOutput(const TerminalOutput&) = delete;
  TerminalOutput& operator=(const TerminalOutput&) = delete;

 protected:
  int_type overflow(int_type letter) override;
  std::streamsize xsputn(const char* letters, std::streamsize count) override;
  int sync() override;

 private:
  /// Writes the whole lines that are not written yet.
  bool pass_on_lines();
  bool write(std::string_view text);

  std::ostream& stream_;
  std::streambuf* target_;
  bool is_paged_;
  bool is_painted_;
  std::size_t width_, height_;
  std::string line_;  ///< the begin of an unfinished line
  std::string held_;
};

/// Makes the output of a verb if standard output is a terminal that can show it, else null.
std::unique_ptr<TerminalOutput> terminal_output(std::ostream& stream, std::string_view verb, bool is_json);

/// The same for errors and notes, on standard error.
std::unique_ptr<TerminalOutput> terminal_errors(std::ostream& stream);

}  // namespace moelab
