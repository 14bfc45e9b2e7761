#include <iostream>
#include <mutex>
#include <streambuf>
#include <string>
#include <vector>

#include "bindings/bindings.h"

namespace moelab::python {
namespace {

constexpr std::string_view kNoteStart = "moelab: ";

/// Splits a stream's text into lines. It keeps the program's notes and writes other lines to `target`.
class NoteBuffer final : public std::streambuf {
 public:
  std::streambuf* target = nullptr;

  std::vector<std::string> taken() {
    const std::lock_guard locked(mutex_);
    return std::exchange(notes_, {});
  }

 protected:
  int_type overflow(int_type letter) override {
    if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
    const char one = traits_type::to_char_type(letter);
    return xsputn(&one, 1) == 1 ? letter : traits_type::eof();
  }
  std::streamsize xsputn(const char* letters, std::streamsize count) override {
    const std::lock_guard locked(mutex_);
    line_.append(letters, static_cast<std::size_t>(count));
    for (std::size_t end = line_.find('\n'); end != std::string::npos; end = line_.find('\n')) {
      if (line_.starts_with(kNoteStart)) {
        notes_.push_back(line_.substr(kNoteStart.size(), end - kNoteStart.size()));
      } else {
        target->sputn(line_.data(), static_cast<std::streamsize>(end + 1));
      }
      line_.erase(0, end + 1);
    }
    return count;
  }
  int sync() override { return target->pubsync(); }

 private:
  std::mutex mutex_;
  std::string line_;  ///< text after the last line break
  std::vector<std::string> notes_;
};

NoteBuffer note_buffer;
int note_collectors = 0;  // guarded by the interpreter's lock

}  // namespace

CollectedNotes::CollectedNotes() {
  if (note_collectors++ == 0) note_buffer.target = std::cerr.rdbuf(&note_buffer);
}

CollectedNotes::~CollectedNotes() {
  if (--note_collectors == 0) std::cerr.rdbuf(note_buffer.target);
  pass_on_notes();
}

void pass_on_notes() {
  const std::vector<std::string> notes = note_buffer.taken();
  if (notes.empty()) return;
  try {
    nb::module_::import_("moelab._notes").attr("tell")(notes);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("moelab's notes");  // a handler of the user's logging failed
  }
}

}  // namespace moelab::python
