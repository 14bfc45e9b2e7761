#pragma once

/// Errors that a caller can act on, contracts inside the program, and texts of messages. app/main.cpp catches
/// all errors once.

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Checks a contract between parts of the program (shapes, strides, padding). A failure ends the program at
/// that place. Release builds check nothing.
#ifdef NDEBUG
#define MOELAB_EXPECT(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define MOELAB_EXPECT(condition) assert(condition)
#endif

namespace moelab {

/// An option that the library cannot accept. `path` names the option as scenarios do ("data.target.kind").
/// The message says what was given and what is allowed.
class InvalidOption : public std::invalid_argument {
 public:
  InvalidOption(std::string path, std::string message)
      : std::invalid_argument(path.empty() ? message : path + ": " + message),
        path_(std::move(path)),
        message_(std::move(message)) {}
  const std::string& path() const { return path_; }
  const std::string& message() const { return message_; }

 private:
  std::string path_;
  std::string message_;
};

/// Bad input that a user wrote (exit status 2). `path` is a JSON path, "file:line:column" or a command-line
/// option.
class UserError : public InvalidOption {
 public:
  using InvalidOption::InvalidOption;
};

/// The environment failed: disk, permissions, a missing program (exit status 3).
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Names in messages

/// The member `name` of each entry, in order.
template <class Entries>
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name);
  return names;
}

/// The allowed name with the smallest Damerau-Levenshtein distance to `given`. Empty if no name is within
/// half of the given name's length.
std::string nearest_name(std::string_view given, const std::vector<std::string>& allowed);

/// "unknown router 'linaer'; did you mean 'linear'? Allowed: linear, mlp". With more than 40 names, only the
/// ten nearest are listed.
std::string unknown_name(std::string_view what, std::string_view given,
                         const std::vector<std::string>& allowed);

/// "1 cell", "2 cells".
template <class Count>
std::string counted(Count count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

// Texts from elsewhere (scenarios, file names, error messages) that are shown on a terminal

/// `text` with all characters written out that a terminal would obey, that reverse the text after them, that
/// end a line unseen, or that XML forbids. They become `\u001b` or `\u202e`, which JSON reads as the same
/// character. Line feeds and tabs stay. Bytes outside UTF-8 become `\x9b`. Everything else is unchanged.
std::string visible_text(std::string_view text);

/// The same in one line: line feeds and tabs become spaces.
std::string visible_line(std::string_view text);

/// Whether a byte begins a character of UTF-8. All further bytes of a character are 10xxxxxx.
inline bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

/// The number of characters of a UTF-8 text.
inline std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

/// The number of bytes at the end of `text` (0 to 3) that begin a UTF-8 character without completing it.
std::size_t unfinished_bytes(std::string_view text);

/// The place of the first byte outside UTF-8, or the length of the text if there is none.
std::size_t first_byte_outside_utf8(std::string_view text);

}  // namespace moelab
