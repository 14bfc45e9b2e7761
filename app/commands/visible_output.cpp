#include "app/commands/visible_output.h"

#include <algorithm>

#include "sim/base/visible_text.h"

namespace moelab {
namespace {

/// Tables of gigabytes pass in pieces.
constexpr std::size_t kPieceBytes = 1 << 16;

bool is_plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= ' ' && letter <= '~') || letter == '\n' || letter == '\t';
  });
}

}  // namespace

VisibleOutput::VisibleOutput(std::ostream& stream) : stream_(stream), target_(stream.rdbuf(this)) {}

VisibleOutput::~VisibleOutput() {
  pass_on_rest();
  stream_.rdbuf(target_);
}

VisibleOutput::int_type VisibleOutput::overflow(int_type letter) {
  if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
  const char byte = traits_type::to_char_type(letter);
  return write({&byte, 1}) ? letter : traits_type::eof();
}

std::streamsize VisibleOutput::xsputn(const char* letters, std::streamsize count) {
  return write({letters, static_cast<std::size_t>(count)}) ? count : 0;
}

int VisibleOutput::sync() {
  const std::lock_guard lock(mutex_);
  return pass_on_rest() ? target_->pubsync() : -1;
}

bool VisibleOutput::write(std::string_view text) {
  const std::lock_guard lock(mutex_);
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, kPieceBytes);
    text.remove_prefix(piece.size());
    if (rest_.empty() && is_plain_ascii(piece)) {
      if (!pass_on(piece)) return false;
      continue;
    }
    std::string whole = rest_;
    whole += piece;
    rest_ = whole.substr(whole.size() - unfinished_bytes(whole));
    whole.resize(whole.size() - rest_.size());
    if (!pass_on(visible_text(whole))) return false;
  }
  return true;
}

bool VisibleOutput::pass_on(std::string_view text) {
  const auto size = static_cast<std::streamsize>(text.size());
  return target_->sputn(text.data(), size) == size;
}

bool VisibleOutput::pass_on_rest() {
  const std::string rest = visible_text(rest_);
  rest_.clear();
  return pass_on(rest);
}

}  // namespace moelab
