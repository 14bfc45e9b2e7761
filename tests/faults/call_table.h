#pragma once

/// The calls that moelab_faults, preloaded into a program, lets fail, and how the program learns which.
///
/// Environment of the program:
///   MOELAB_FAULT_CALL    a name of kCalls; without it nothing fails
///   MOELAB_FAULT_FIRST   the first call that fails, counted from 1 at the start of main
///   MOELAB_FAULT_LAST    the last one
///   MOELAB_FAULT_ERROR   its errno; kHalf: a write or read of half of the bytes
///   MOELAB_FAULT_FOLDER  calls on files count and are traced where their path begins so; absolute
///   MOELAB_FAULT_COUNTS  a file of two std::uint64_t: calls seen and calls that failed, kept also by a kill
///   MOELAB_FAULT_HOST    the name that gethostname gives
///   MOELAB_FAULT_CLOCK   "SECOND STEP": the clock of the day shows this second since 1970, and moves by so
///   many
///                        seconds whenever it is read; 0 stands still, and a negative step jumps back
///   MOELAB_FAULT_PROCESS the number that getpid gives
///   MOELAB_FAULT_TRACE   a file to which every change in the folder is appended, see TraceHeader
/// The library takes itself out of the environment, so children are undisturbed.

#include <cerrno>
#include <cstdint>

namespace moelab::faults {

/// In place of an errno: half of the bytes are read or written, which is no error.
constexpr int kHalf = 0;

enum class Call {
  open,
  list,
  look,
  read,
  write,
  flush,
  close,
  rename,
  map,
  cut,
  folder,
  remove,
  lock,
  thread,
  process,
  wait,
  memory
};

struct CallEntry {
  Call call;
  const char* name;
  int errors[5];  ///< that it may fail with
  int error_count;
};

/// In the order of Call.
constexpr CallEntry kCalls[] = {
    {Call::open, "open", {EACCES, EMFILE, ENOSPC, EIO, ENOMEM}, 5},  // open, openat, fopen
    {Call::list, "list", {EACCES, EMFILE, EIO}, 3},                  // opendir, fdopendir, readdir
    {Call::look, "look", {EACCES, EIO, ENOMEM}, 3},                  // stat, lstat, fstat
    {Call::read, "read", {EIO, EINTR, kHalf}, 3},                    // read, pread, readv
    {Call::write, "write", {ENOSPC, EIO, EFBIG, EINTR, kHalf}, 5},   // write, pwrite, writev
    {Call::flush, "flush", {EIO, ENOSPC}, 2},                        // fsync, fdatasync
    {Call::close, "close", {EIO, ENOSPC}, 2},            // close, fclose: the descriptor is free all the same
    {Call::rename, "rename", {EACCES, ENOSPC, EIO}, 3},  // rename, renameat
    {Call::map, "map", {ENOMEM, EACCES}, 2},             // mmap of a file
    {Call::cut, "cut", {EIO, EFBIG}, 2},                 // ftruncate, truncate
    {Call::folder, "folder", {EACCES, ENOSPC, EROFS}, 3},     // mkdir
    {Call::remove, "remove", {EACCES, EROFS}, 2},             // unlink, unlinkat, remove, rmdir
    {Call::lock, "lock", {ENOLCK, EINVAL}, 2},                // flock, fcntl with an OFD lock
    {Call::thread, "thread", {EAGAIN}, 1},                    // pthread_create
    {Call::process, "process", {EAGAIN, ENOENT, ENOMEM}, 3},  // posix_spawnp
    {Call::wait, "wait", {EINTR, ECHILD}, 2},                 // waitpid
    {Call::memory, "memory", {ENOMEM}, 1},                    // malloc, calloc, realloc and aligned ones
};

/// Before each entry of a trace; `first` and `second` bytes of paths follow, then `size` bytes of data.
struct TraceHeader {
  enum Operation : std::int32_t { open, write, flush, cut, rename, folder, remove } operation;
  std::int32_t descriptor;  ///< of open, write, flush and cut
  std::int32_t flags;       ///< of open
  std::int32_t padding;
  std::int64_t offset;   ///< of a write, −1 where the file's own position counts; the length of a cut
  std::uint64_t first;   ///< length of the path
  std::uint64_t second;  ///< length of the new path of a rename
  std::uint64_t size;    ///< of the data of a write
};

}  // namespace moelab::faults
