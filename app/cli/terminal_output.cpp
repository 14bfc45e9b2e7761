#include "app/cli/terminal_output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <vector>

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

/// Whether a byte begins a character of UTF-8.
bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
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
  static const std::regex results = [] {
    std::vector<std::string> words;
    for (const auto& [word, colour] : colours()) words.push_back(word);
    return std::regex(fmt::format("(^|: |[0-9] |  )({})(?![a-z_.])", fmt::join(words, "|")));
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

std::string wrapped(const std::string& line, std::size_t width) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const bool is_table = line.find("  ", indent) != std::string::npos;
  if (is_table || width_of(line) <= width || indent + 20 > width) return line;
  std::string text, part = line.substr(0, indent);
  bool has_word = false;
  for (std::size_t begin = indent; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    const std::string word = line.substr(begin, end - begin);
    if (has_word && width_of(part) + 1 + width_of(word) > width) {
      text += part + "\n";
      part = std::string(indent + 2, ' ');
      has_word = false;
    }
    part += (has_word ? " " : "") + word;
    has_word = true;
    begin = end + 1;
  }
  return text + part;
}

TerminalOutput::TerminalOutput(std::ostream& stream, bool is_paged)
    : stream_(stream), target_(stream.rdbuf(this)), is_paged_(is_paged), width_(80), height_(24) {
  const char* const no_color = std::getenv("NO_COLOR");
  is_painted_ = !no_color || *no_color == '\0';
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return;
  width_ = size.ws_col;
  height_ = size.ws_row;
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
  const char* const kind = std::getenv("TERM");
  if (is_json || ::isatty(STDOUT_FILENO) != 1 || !kind || std::string_view(kind) == "dumb") return nullptr;
  return std::make_unique<TerminalOutput>(stream, has_pages(verb));
}

}  // namespace moelab
