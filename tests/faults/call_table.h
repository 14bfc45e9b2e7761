#pragma once

/// The calls that moelab_faults lets fail, and how the program learns which. The library is preloaded into a
/// program. It takes its settings out of the environment, so that children are undisturbed.

// Which calls fail:
//   MOELAB_FAULT_CALL    A name of kCalls. Without it nothing fails.
//   MOELAB_FAULT_FIRST   The first call that fails, counted from 1 at the start of main.
//   MOELAB_FAULT_LAST    The last call that fails.
//   MOELAB_FAULT_ERROR   The errno of these calls. kHalf writes or reads half of the bytes.

// Which calls count, and where that is written:
//   MOELAB_FAULT_FOLDER  An absolute path. Calls on files count where their path begins so.
//   MOELAB_FAULT_COUNTS  A file of two std::uint64_t: calls seen and calls that failed. A kill keeps it.
//   MOELAB_FAULT_TRACE   A file to which every change in the folder is appended (TraceHeader).

// What the machine answers:
//   MOELAB_FAULT_HOST    The name that gethostname gives.
//   MOELAB_FAULT_PROCESS The number that getpid gives.
//   MOELAB_FAULT_CLOCK   "SECOND STEP": the second since 1970 that the clock of the day shows. It moves by
//                        STEP whenever it is read. 0 stands still. A negative step jumps back.

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
