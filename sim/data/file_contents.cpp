#include "sim/data/file_contents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <libdeflate.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>

#include "sim/base/error.h"
#include "sim/base/folder.h"

namespace moelab {
namespace {

std::uint32_t block_checksum(std::string_view bytes) {
  return ::libdeflate_crc32(0, bytes.data(), bytes.size());
}

[[noreturn]] void fail_to_read(const std::filesystem::path& file, const std::string& reason) {
  throw EnvironmentError(fmt::format("{}: {}", file.string(), reason));
}

}  // namespace

FileContent::FileContent(const std::filesystem::path& file) {
  const InputFile input(file);
  boost::crc_optimal<64, 0x42F0E1EBA9EA3693u, ~0ull, ~0ull, true, true> checksum;
  std::vector<char> block(kBlock);
  while (size_ < input.size()) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, input.size() - size_));
    input.read(size_, block.data(), count);
    checksum.process_bytes(block.data(), count);
    blocks_.push_back(block_checksum({block.data(), count}));
    size_ += count;
  }
  name_ = fmt::format("{} bytes, {:016x}", size_, checksum.checksum());
}

bool FileContent::holds(std::uint64_t number, std::string_view bytes) const {
  return number < blocks_.size() && blocks_[number] == block_checksum(bytes);
}

InputFile::InputFile(std::filesystem::path file, std::shared_ptr<const FileContent> content)
    : file_(std::move(file)),
      content_(std::move(content)),
      descriptor_(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status {};
  std::string failure;
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    failure = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    failure = "is no regular file";
  }
  if (!failure.empty()) {
    if (descriptor_ >= 0) ::close(descriptor_);  // the destructor does not run after a throwing constructor
    fail_to_read(file_, failure);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  if (content_ && content_->size() != size_) {
    ::close(descriptor_);
    refuse_change();
  }
}

InputFile::InputFile(InputFile&& other) noexcept
    : file_(std::move(other.file_)),
      content_(std::move(other.content_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::refuse_change() const {
  fail_to_read(file_,
               "holds other bytes than when it was first read; cells are known by what their files hold, so "
               "start again once it stays as it is");
}

void InputFile::read_unchecked(std::uint64_t offset, char* bytes, std::size_t count) const {
  while (count > 0) {
    const ::ssize_t got = ::pread(descriptor_, bytes, count, static_cast<::off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read(file_, std::strerror(errno));
    if (got == 0) fail_to_read(file_, "became shorter while it was read");
    bytes += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

void InputFile::read(std::uint64_t offset, char* bytes, std::size_t count) const {
  if (!content_) return read_unchecked(offset, bytes, count);
  if (offset > size_ || count > size_ - offset) refuse_change();
  constexpr std::uint64_t kBlock = FileContent::kBlock;
  std::vector<char> block;
  while (count > 0) {
    const std::uint64_t number = offset / kBlock, start = number * kBlock;
    const auto length = static_cast<std::size_t>(std::min(kBlock, size_ - start));
    const auto skipped = static_cast<std::size_t>(offset - start);
    const std::size_t wanted = std::min(count, length - skipped);
    // The checked bytes are the used bytes: none is read twice.
    char* checked = bytes;
    if (wanted < length) {
      block.resize(kBlock);
      checked = block.data();
    }
    read_unchecked(start, checked, length);
    if (!content_->holds(number, {checked, length})) refuse_change();
    if (wanted < length) std::copy_n(checked + skipped, wanted, bytes);
    bytes += wanted;
    offset += wanted;
    count -= wanted;
  }
}

std::shared_ptr<const FileContent> FileContents::of(const std::filesystem::path& file) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const FileContent>& content = known_[file.string()];
  if (!content) content = std::make_shared<const FileContent>(file);
  return content;
}

std::string FileContents::name_of(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) ? name_of_folder(path) : of(path)->name();
}

std::string FileContents::name_of_folder(const std::filesystem::path& folder) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = folders_.find(folder.string()); known != folders_.end()) return known->second;
  }
  std::string name;
  for (const std::filesystem::path& file : entries_of(folder)) {
    if (std::filesystem::is_regular_file(file))
      name += fmt::format("{}: {}\n", visible_text(file.filename().string()), of(file)->name());
  }
  const std::lock_guard lock(mutex_);
  return folders_.try_emplace(folder.string(), name).first->second;
}

}  // namespace moelab
