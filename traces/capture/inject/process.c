#include "process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cupti_record.h"
#include "record_file.h"

enum { LIBRARY_VERSION = 1, LONGEST_COMMAND = 8192 };

static uint32_t name_of_executable(void) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = '\0';
  return file_name(path);
}

/* The arguments with spaces between them, as much of them as fits. */
static uint32_t command_line(void) {
  char text[LONGEST_COMMAND];
  const int descriptor = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  ssize_t length = read(descriptor, text, sizeof text - 1);
  close(descriptor);
  if (length <= 0) return 0;
  while (length > 0 && text[length - 1] == '\0') --length;
  for (ssize_t i = 0; i < length; ++i)
    if (text[i] == '\0') text[i] = ' ';
  text[length] = '\0';
  return file_name(text);
}

/* Asks a library that the program has loaded; 0 where it has not. */
static int version_from(const char* library, const char* function) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return 0;
  void* symbol = dlsym(handle, function);
  int (*ask)(int*) = NULL;
  memcpy(&ask, &symbol, sizeof ask);
  int version = 0;
  if (ask == NULL || ask(&version) != 0) version = 0;
  dlclose(handle);
  return version;
}

static int runtime_version(void) {
  static const char* const libraries[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  int version = 0;
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries && version == 0; ++i)
    version = version_from(libraries[i], "cudaRuntimeGetVersion");
  return version;
}

void process_describe(void) {
  MwiProcess record = {.process = (uint32_t)getpid(),
                       .executable = name_of_executable(),
                       .command_line = command_line(),
                       .driver_version = version_from("libcuda.so.1", "cuDriverGetVersion"),
                       .runtime_version = runtime_version(),
                       .compiled_version = CUPTI_API_VERSION,
                       .library_version = LIBRARY_VERSION};
  if (cuptiGetVersion(&record.cupti_version) != CUPTI_SUCCESS) record.cupti_version = 0;
  FILE_ADD(record, MWI_PROCESS);
}

static uint64_t nanoseconds(clockid_t clock) {
  struct timespec now = {0, 0};
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void process_note_clock(void) {
  MwiClock record = {0};
  if (cuptiGetTimestamp(&record.cupti_ns) != CUPTI_SUCCESS) return; /* the first call takes long */
  record.realtime_ns = nanoseconds(CLOCK_REALTIME);
  if (cuptiGetTimestamp(&record.cupti_ns) != CUPTI_SUCCESS) return;
  /* CUPTI's time lies between the two; the middle is off by less than a microsecond. */
  record.realtime_ns += (nanoseconds(CLOCK_REALTIME) - record.realtime_ns) / 2;
  record.monotonic_ns = nanoseconds(CLOCK_MONOTONIC);
  FILE_ADD(record, MWI_CLOCK);
}
