#include "app/cli/terminal_output.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <vector>

#include "app/run/scheduler.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The ANSI colours of results.
const std::map<std::string, const char*>& colours() {
  static const std::map<std::string, const char*> table = {
      {"reproduced", "32"},   {"holds", "32"},  {"done", "32"},     {"refuted", "31"},
      {"fails", "31"},        {"failed", "31"}, {"diverged", "31"}, {"inconclusive", "33"},
      {"uninformative", "2"}, {"outside", "2"}, {"missing", "33"},  {"equivalent", "36"}};
  return table;
}

/// Verbs whose answer is a text to read at once.
bool has_pages(std::string_view verb) {
  static const std::string_view verbs[] = {"",        "help",      "--help", "-h",      "list",
                                           "check",   "claims",    "table",  "plan",    "status",
                                           "compare", "agreement", "schema", "validate"};
  return std::find(std::begin(verbs), std::end(verbs), verb) != std::end(verbs);
}

/// Pipes a text through the user's pager. Returns false if it cannot be started.
bool page(const std::string& text) {
  const char* const own = std::getenv("PAGER");
  const std::string pager = own ? own : "less";
  if (pager.empty() || pager == "cat") return false;
  ::setenv("LESS", "FRX", 0);
  // A reader who leaves the pager early closes the pipe.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  std::FILE* const pipe = ::popen(pager.c_str(), "w");  // NOLINT(cert-env33-c): the user's own command
  bool is_shown = pipe != nullptr;
  if (pipe) {
    std::fwrite(text.data(), 1, text.size(), pipe);
    constexpr int kNoProgram = 127;
    const int status = ::pclose(pipe);
    is_shown = !(WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram);
  }
  std::signal(SIGPIPE, before);
  return is_shown;
}

}  // namespace

std::string painted(const std::string& line) {
  for (const auto& [mark, colour] : {std::pair("moelab: error:", "1;31"), {"moelab: note:", "36"}}) {
    const std::string_view begin = mark;
    if (line.starts_with(begin))
      return fmt::format("\x1b[{}m{}\x1b[0m{}", colour, begin, line.substr(begin.size()));
  }
  static const std::regex results = [] {
    std::vector<std::string> words;
    for (const auto& [word, colour] : colours()) words.push_back(word);
    return std::regex(fmt::format("(^|: |[0-9] |  )({})(?![a-z_.]| by)", fmt::join(words, "|")));
  }();
  std::string text;
  auto rest = line.cbegin();
  for (std::sregex_iterator match(line.begin(), line.end(), results), none; match != none; ++match) {
    text.append(rest, (*match)[2].first);
    const std::string word = (*match)[2];
    text += std::string("\x1b[") + colours().at(word) + "m" + word + "\x1b[0m";
    rest = (*match)[2].second;
  }
  return text.append(rest, line.cend());
}

namespace {

/// Breaks a text at spaces into parts of at most `width` characters. The first part has at most `first`. A
/// word that is too wide stays whole.
std::vector<std::string> parts_of(std::string_view text, std::size_t first, std::size_t width) {
  std::vector<std::string> parts(1);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const std::size_t most = parts.size() == 1 ? first : width;
    if (!parts.back().empty() && count_characters(parts.back()) + 1 + count_characters(word) > most)
      parts.emplace_back();
    if (!parts.back().empty()) parts.back() += ' ';
    parts.back() += word;
    begin = end + 1;
  }
  return parts;
}

/// A row of a table, whose columns stand at least two spaces apart. A column that does not fit begins a new
/// line. If it begins in the left half, its parts stay below its begin.
std::string wrapped_row(std::string_view line, std::size_t indent, std::size_t width) {
  std::string text(indent, ' ');
  std::size_t at = indent;  // the column of the screen after the text
  for (std::size_t begin = indent; begin < line.size();) {
    const std::size_t end = std::min(line.find("  ", begin), line.size());
    const std::size_t next = std::min(line.find_first_not_of(' ', end), line.size());
    const std::string_view column = line.substr(begin, end - begin);
    const bool hangs = next == line.size() && at > indent && at <= width / 2;
    std::size_t place = at;
    if (at + count_characters(column) > width && !hangs && at > indent) {
      place = indent + 2;
      text.erase(text.find_last_not_of(' ') + 1);
      text += "\n" + std::string(place, ' ');
    }
    const std::vector<std::string> parts = parts_of(column, width - place, width - place);
    text += fmt::format("{}", fmt::join(parts, "\n" + std::string(place, ' ')));
    at = place + count_characters(parts.back());
    const std::size_t gap = next - end;
    text.append(next < line.size() ? gap : 0, ' ');
    at += gap;
    begin = next;
  }
  return text;
}

}  // namespace

std::string wrapped(const std::string& line, std::size_t width) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  if (count_characters(line) <= width || indent + 20 > width) return line;
  if (line.find("  ", indent) != std::string::npos) return wrapped_row(line, indent, width);
  const std::vector<std::string> parts =
      parts_of(std::string_view(line).substr(indent), width - indent, width - indent - 2);
  return std::string(indent, ' ') + fmt::format("{}", fmt::join(parts, "\n" + std::string(indent + 2, ' ')));
}

TerminalOutput::TerminalOutput(std::ostream& stream, int descriptor, bool is_paged)
    : stream_(stream),
      target_(stream.rdbuf(this)),
      is_paged_(is_paged),
      is_painted_(wants_colours()),
      width_(80),
      height_(24) {
  const std::optional<TerminalSize> size = terminal_size(descriptor);
  if (!size || size->rows == 0) return;
  width_ = size->columns;
  height_ = size->rows;
}

TerminalOutput::~TerminalOutput() {
  if (!line_.empty()) {
    line_ += '\n';
    pass_on_lines();
  }
  const auto lines = static_cast<std::size_t>(std::count(held_.begin(), held_.end(), '\n'));
  if (lines < height_ || !page(held_)) {
    target_->sputn(held_.data(), static_cast<std::streamsize>(held_.size()));
    target_->pubsync();
  }
  stream_.rdbuf(target_);
}

TerminalOutput::int_type TerminalOutput::overflow(int_type letter) {
  if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
  const char byte = traits_type::to_char_type(letter);
  return write({&byte, 1}) ? letter : traits_type::eof();
}

std::streamsize TerminalOutput::xsputn(const char* letters, std::streamsize count) {
  return write({letters, static_cast<std::size_t>(count)}) ? count : 0;
}

int TerminalOutput::sync() {
  return is_paged_ ? 0 : target_->pubsync();
}

bool TerminalOutput::write(std::string_view text) {
  line_ += text;
  return text.find('\n') == std::string_view::npos || pass_on_lines();
}

bool TerminalOutput::pass_on_lines() {
  const std::size_t end = line_.rfind('\n') + 1;
  std::string text;
  for (std::size_t begin = 0; begin < end;) {
    const std::size_t next = line_.find('\n', begin);
    const std::string whole = wrapped(line_.substr(begin, next - begin), width_);
    text += (is_painted_ ? painted(whole) : whole) + "\n";
    begin = next + 1;
  }
  line_.erase(0, end);
  if (is_paged_) {
    held_ += text;
    return true;
  }
  const auto size = static_cast<std::streamsize>(text.size());
  return target_->sputn(text.data(), size) == size;
}

std::unique_ptr<TerminalOutput> terminal_output(std::ostream& stream, std::string_view verb, bool is_json) {
  if (is_json || !is_live_terminal(STDOUT_FILENO)) return nullptr;
  return std::make_unique<TerminalOutput>(stream, STDOUT_FILENO, has_pages(verb));
}

std::unique_ptr<TerminalOutput> terminal_errors(std::ostream& stream) {
  if (!is_live_terminal(STDERR_FILENO)) return nullptr;
  return std::make_unique<TerminalOutput>(stream, STDERR_FILENO, false);
}

}  // namespace moelab
