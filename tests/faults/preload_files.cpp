/// The wrappers of the calls on files.

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "tests/faults/preload.h"

namespace moelab::faults {
namespace {

template <class Open>
int opened(const char* path, int flags, const Open& open) {
  if (fails(Call::open, path)) return -1;
  const Ordered ordered;
  const int descriptor = open();
  if (descriptor < 0) return descriptor;
  mark(descriptor, is_inside(path));
  if (is_inside(path)) tell({TraceHeader::open, descriptor, flags, 0, 0, 0, 0, 0}, path);
  return descriptor;
}

/// The flags of fopen's mode.
int flags_of(const char* mode) {
  const int access = std::strchr(mode, '+') != nullptr ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  if (mode[0] == 'w') return access | O_CREAT | O_TRUNC;
  return mode[0] == 'a' ? access | O_CREAT | O_APPEND : access;
}

FILE* opened_stream(const char* path, const char* mode, decltype(&::fopen) open) {
  FILE* stream = nullptr;
  opened(path, flags_of(mode), [&] {
    stream = open(path, mode);
    return stream == nullptr ? -1 : ::fileno(stream);
  });
  return stream;
}

template <class Write>
ssize_t written(int descriptor, const void* bytes, std::size_t size, std::int64_t offset,
                const Write& write) {
  bool half = false;
  if (fails(Call::write, descriptor, &half)) return -1;
  const Ordered ordered;
  const ssize_t done = write(half ? (size + 1) / 2 : size);
  if (done > 0 && is_inside(descriptor))
    tell({TraceHeader::write, descriptor, 0, 0, offset, 0, 0, static_cast<std::uint64_t>(done)}, "", "",
         bytes);
  return done;
}

/// `change` of a path, told where it succeeds.
template <class Change>
int changed(Call call, TraceHeader::Operation operation, const char* path, const char* to,
            const Change& change) {
  if (fails(call, path)) return -1;
  const Ordered ordered;
  const int status = change();
  if (status == 0 && is_inside(path)) tell({operation, 0, 0, 0, 0, 0, 0, 0}, path, to);
  return status;
}

}  // namespace
}  // namespace moelab::faults

using namespace moelab::faults;

extern "C" {

#pragma GCC visibility push(default)

#define MOELAB_OPEN(name)                                                             \
  int name(const char* path, int flags, ...) {                                        \
    va_list rest;                                                                     \
    va_start(rest, flags);                                                            \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;            \
    va_end(rest);                                                                     \
    return opened(path, flags, [&] { return MOELAB_NEXT(name)(path, flags, mode); }); \
  }
MOELAB_OPEN(open)
MOELAB_OPEN(open64)
#undef MOELAB_OPEN

#define MOELAB_OPEN_AT(name)                                                                \
  int name(int base, const char* path, int flags, ...) {                                    \
    va_list rest;                                                                           \
    va_start(rest, flags);                                                                  \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;                  \
    va_end(rest);                                                                           \
    return opened(path, flags, [&] { return MOELAB_NEXT(name)(base, path, flags, mode); }); \
  }
MOELAB_OPEN_AT(openat)
MOELAB_OPEN_AT(openat64)
#undef MOELAB_OPEN_AT

#define MOELAB_FCNTL(name)                                                  \
  int name(int descriptor, int command, ...) {                              \
    va_list rest;                                                           \
    va_start(rest, command);                                                \
    void* const argument = va_arg(rest, void*);                             \
    va_end(rest);                                                           \
    if (command == F_OFD_SETLK && fails(Call::lock, descriptor)) return -1; \
    return MOELAB_NEXT(name)(descriptor, command, argument);                \
  }
MOELAB_FCNTL(fcntl)
MOELAB_FCNTL(fcntl64)
#undef MOELAB_FCNTL

int flock(int descriptor, int operation) noexcept {
  return fails(Call::lock, descriptor) ? -1 : MOELAB_NEXT(flock)(descriptor, operation);
}

FILE* fopen(const char* path, const char* mode) {
  return opened_stream(path, mode, MOELAB_NEXT(fopen));
}
FILE* fopen64(const char* path, const char* mode) {
  return opened_stream(path, mode, MOELAB_NEXT(fopen64));
}

DIR* opendir(const char* path) {
  return fails(Call::list, path) ? nullptr : MOELAB_NEXT(opendir)(path);
}
DIR* fdopendir(int descriptor) {
  return fails(Call::list, descriptor) ? nullptr : MOELAB_NEXT(fdopendir)(descriptor);
}

dirent* readdir(DIR* listing) {
  return fails(Call::list, ::dirfd(listing)) ? nullptr : MOELAB_NEXT(readdir)(listing);
}

int stat(const char* path, struct stat* found) {
  return fails(Call::look, path) ? -1 : MOELAB_NEXT(stat)(path, found);
}
int stat64(const char* path, struct stat64* found) {
  return fails(Call::look, path) ? -1 : MOELAB_NEXT(stat64)(path, found);
}
int lstat(const char* path, struct stat* found) {
  return fails(Call::look, path) ? -1 : MOELAB_NEXT(lstat)(path, found);
}
int lstat64(const char* path, struct stat64* found) {
  return fails(Call::look, path) ? -1 : MOELAB_NEXT(lstat64)(path, found);
}

int fstat64(int descriptor, struct stat64* found) {
  return fails(Call::look, descriptor) ? -1 : MOELAB_NEXT(fstat64)(descriptor, found);
}

ssize_t read(int descriptor, void* bytes, std::size_t size) {
  bool half = false;
  if (fails(Call::read, descriptor, &half)) return -1;
  return MOELAB_NEXT(read)(descriptor, bytes, half ? (size + 1) / 2 : size);
}
ssize_t pread(int descriptor, void* bytes, std::size_t size, off_t offset) {
  bool half = false;
  if (fails(Call::read, descriptor, &half)) return -1;
  return MOELAB_NEXT(pread)(descriptor, bytes, half ? (size + 1) / 2 : size, offset);
}
ssize_t readv(int descriptor, const iovec* parts, int count) {
  return fails(Call::read, descriptor) ? -1 : MOELAB_NEXT(readv)(descriptor, parts, count);
}

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  return written(descriptor, bytes, size, -1,
                 [&](std::size_t part) { return MOELAB_NEXT(write)(descriptor, bytes, part); });
}
ssize_t pwrite(int descriptor, const void* bytes, std::size_t size, off_t offset) {
  return written(descriptor, bytes, size, offset,
                 [&](std::size_t part) { return MOELAB_NEXT(pwrite)(descriptor, bytes, part, offset); });
}
/// As a write for each part: a caller has to bear that anyway.
ssize_t writev(int descriptor, const iovec* parts, int count) {
  if (!is_inside(descriptor)) return MOELAB_NEXT(writev)(descriptor, parts, count);
  ssize_t done = 0;
  for (int i = 0; i < count; ++i) {
    const ssize_t part = write(descriptor, parts[i].iov_base, parts[i].iov_len);
    if (part < 0) return done > 0 ? done : -1;
    done += part;
    if (static_cast<std::size_t>(part) < parts[i].iov_len) break;
  }
  return done;
}

int fsync(int descriptor) {
  if (fails(Call::flush, descriptor)) return -1;
  const Ordered ordered;
  const int status = MOELAB_NEXT(fsync)(descriptor);
  if (status == 0 && is_inside(descriptor)) tell({TraceHeader::flush, descriptor, 0, 0, 0, 0, 0, 0});
  return status;
}
int fdatasync(int descriptor) {
  return fsync(descriptor);
}

int close(int descriptor) {
  const bool failed = fails(Call::close, descriptor);
  const int error = errno;
  mark(descriptor, false);
  const int status = MOELAB_NEXT(close)(descriptor);
  if (failed) errno = error;
  return failed ? -1 : status;
}
int fclose(FILE* stream) {
  const int descriptor = ::fileno(stream);
  const bool failed = fails(Call::close, descriptor);
  const int error = errno;
  mark(descriptor, false);
  const int status = MOELAB_NEXT(fclose)(stream);
  if (failed) errno = error;
  return failed ? EOF : status;
}

int rename(const char* from, const char* to) {
  return changed(Call::rename, TraceHeader::rename, from, to, [&] { return MOELAB_NEXT(rename)(from, to); });
}
int renameat(int from_base, const char* from, int to_base, const char* to) {
  return changed(Call::rename, TraceHeader::rename, from, to,
                 [&] { return MOELAB_NEXT(renameat)(from_base, from, to_base, to); });
}

void* mmap(void* address, std::size_t size, int protection, int flags, int descriptor, off_t offset) {
  if (fails(Call::map, descriptor)) return MAP_FAILED;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, size, protection, flags, descriptor, offset));
}

int ftruncate(int descriptor, off_t length) {
  if (fails(Call::cut, descriptor)) return -1;
  const Ordered ordered;
  const int status = MOELAB_NEXT(ftruncate)(descriptor, length);
  if (status == 0 && is_inside(descriptor)) tell({TraceHeader::cut, descriptor, 0, 0, length, 0, 0, 0});
  return status;
}

int truncate(const char* path, off_t length) {
  return fails(Call::cut, path) ? -1 : MOELAB_NEXT(truncate)(path, length);
}

int mkdir(const char* path, mode_t mode) {
  return changed(Call::folder, TraceHeader::folder, path, "", [&] { return MOELAB_NEXT(mkdir)(path, mode); });
}

int unlink(const char* path) {
  return changed(Call::remove, TraceHeader::remove, path, "", [&] { return MOELAB_NEXT(unlink)(path); });
}
int unlinkat(int base, const char* path, int flags) {
  return changed(Call::remove, TraceHeader::remove, path, "",
                 [&] { return MOELAB_NEXT(unlinkat)(base, path, flags); });
}
int remove(const char* path) {
  return changed(Call::remove, TraceHeader::remove, path, "", [&] { return MOELAB_NEXT(remove)(path); });
}
int rmdir(const char* path) {
  return changed(Call::remove, TraceHeader::remove, path, "", [&] { return MOELAB_NEXT(rmdir)(path); });
}

#pragma GCC visibility pop
}
