/// A library for LD_PRELOAD: one call of call_table.h fails where the environment says so, and all that
/// changes files is written to a trace. Calls count from the start of main, without the loader's.

#include "tests/faults/preload.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace moelab::faults {
namespace {

struct Counts {
  std::atomic<std::uint64_t> seen, failed;
};

constexpr int kDescriptors = 1024;
constexpr int kTraceDescriptor = 1000;

Counts own_counts;
Counts* counts = &own_counts;
int chosen_call = -1, chosen_error = 0;
std::uint64_t first_failure = 0, last_failure = 0;
const char* folder = nullptr;
int trace = -1;
std::atomic<bool> in_main = false;
std::atomic<bool> inside_descriptors[kDescriptors];
pthread_mutex_t trace_order = PTHREAD_MUTEX_INITIALIZER;

std::uint64_t number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

void read_environment() {
  folder = std::getenv("MOELAB_FAULT_FOLDER");
  if (const char* const name = std::getenv("MOELAB_FAULT_CALL")) {
    for (const CallEntry& entry : kCalls) {
      if (std::strcmp(entry.name, name) == 0) chosen_call = static_cast<int>(entry.call);
    }
  }
  first_failure = number_of("MOELAB_FAULT_FIRST");
  last_failure = number_of("MOELAB_FAULT_LAST");
  chosen_error = static_cast<int>(number_of("MOELAB_FAULT_ERROR"));
  if (const char* const file = std::getenv("MOELAB_FAULT_COUNTS")) {
    const int descriptor = static_cast<int>(::syscall(SYS_open, file, O_RDWR | O_CLOEXEC));
    void* const memory = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory != MAP_FAILED) counts = static_cast<Counts*>(memory);
    ::syscall(SYS_close, descriptor);
  }
  if (const char* const file = std::getenv("MOELAB_FAULT_TRACE")) {
    const int descriptor = static_cast<int>(::syscall(SYS_open, file, O_WRONLY | O_APPEND | O_CLOEXEC));
    trace = static_cast<int>(::syscall(SYS_dup3, descriptor, kTraceDescriptor, O_CLOEXEC));
    ::syscall(SYS_close, descriptor);
  }
  ::unsetenv("LD_PRELOAD");
}

int (*program_main)(int, char**, char**) = nullptr;

int counted_main(int argument_count, char** arguments, char** environment) {
  read_environment();
  in_main = true;
  const int status = program_main(argument_count, arguments, environment);
  in_main = false;
  return status;
}

}  // namespace

bool fails(Call call, bool* half) {
  if (static_cast<int>(call) != chosen_call || !in_main) return false;
  const std::uint64_t number = ++counts->seen;
  if (number < first_failure || number > last_failure) return false;
  if (chosen_error == kHalf && half == nullptr) return false;
  ++counts->failed;
  if (chosen_error == kHalf) {
    *half = true;
    return false;
  }
  errno = chosen_error;
  return true;
}

bool fails(Call call, const char* path) {
  return is_inside(path) && fails(call);
}

bool fails(Call call, int descriptor, bool* half) {
  return is_inside(descriptor) && fails(call, half);
}

int failing_error() {
  return chosen_error;
}

bool is_inside(const char* path) {
  return path != nullptr && folder != nullptr && std::strncmp(path, folder, std::strlen(folder)) == 0;
}

bool is_inside(int descriptor) {
  return descriptor >= 0 && descriptor < kDescriptors && inside_descriptors[descriptor];
}

void mark(int descriptor, bool inside) {
  if (descriptor >= 0 && descriptor < kDescriptors) inside_descriptors[descriptor] = inside;
}

void tell(TraceHeader header, const char* first, const char* second, const void* data) {
  if (trace < 0) return;
  const int error = errno;
  header.first = std::strlen(first);
  header.second = std::strlen(second);
  const iovec parts[] = {{&header, sizeof header},
                         {const_cast<char*>(first), header.first},
                         {const_cast<char*>(second), header.second},
                         {const_cast<void*>(data), header.size}};
  ::syscall(SYS_writev, trace, parts, 4);
  errno = error;
}

Ordered::Ordered() {
  if (trace >= 0) ::pthread_mutex_lock(&trace_order);
}

Ordered::~Ordered() {
  if (trace >= 0) ::pthread_mutex_unlock(&trace_order);
}

}  // namespace moelab::faults

using moelab::faults::Call;
using moelab::faults::fails;

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

#pragma GCC visibility push(default)

int __libc_start_main(int (*main)(int, char**, char**), int argument_count, char** arguments, void (*init)(),
                      void (*fini)(), void (*loader_fini)(), void* stack_end) {
  using Start = int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  moelab::faults::program_main = main;
  return reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"))(
      moelab::faults::counted_main, argument_count, arguments, init, fini, loader_fini, stack_end);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  if (fails(Call::thread)) return moelab::faults::failing_error();
  return MOELAB_NEXT(pthread_create)(thread, attributes, start, argument);
}

int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  if (fails(Call::process)) return moelab::faults::failing_error();
  return MOELAB_NEXT(posix_spawnp)(process, file, actions, attributes, arguments, environment);
}

pid_t waitpid(pid_t process, int* status, int options) {
  return fails(Call::wait) ? -1 : MOELAB_NEXT(waitpid)(process, status, options);
}

int gethostname(char* name, std::size_t size) noexcept {
  const char* const given = std::getenv("MOELAB_FAULT_HOST");
  if (given == nullptr) return MOELAB_NEXT(gethostname)(name, size);
  std::strncpy(name, given, size);
  return 0;
}

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const char* const given = std::getenv("MOELAB_FAULT_CLOCK");
  if (given == nullptr || clock != CLOCK_REALTIME) return MOELAB_NEXT(clock_gettime)(clock, now);
  static std::atomic<long> readings = 0;
  char* step = nullptr;
  const long start = std::strtol(given, &step, 10);
  *now = {start + readings++ * std::strtol(step, nullptr, 10), 0};
  return 0;
}

pid_t getpid() noexcept {
  const char* const given = std::getenv("MOELAB_FAULT_PROCESS");
  return given == nullptr ? MOELAB_NEXT(getpid)() : static_cast<pid_t>(std::strtol(given, nullptr, 10));
}

void* malloc(std::size_t size) {
  return fails(Call::memory) ? nullptr : __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  return fails(Call::memory) ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
  return fails(Call::memory) ? nullptr : __libc_realloc(memory, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails(Call::memory) ? nullptr : __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  if (fails(Call::memory)) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

#pragma GCC visibility pop
}
