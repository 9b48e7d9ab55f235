#include "kernel_name.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "record_file.h"

typedef char* (*Demangle)(const char* mangled, char* buffer, size_t* length, int* status);

enum { SLOTS = 1 << 12, LONGEST = 4096 };

/* The kernels met last, by a hash of the mangled name: reading C++ names costs microseconds, and a program runs the
 * same few kernels again and again. */
static struct {
  char* mangled;
  uint32_t id;
} known[SLOTS];

/* __cxa_demangle of whatever C++ runtime the program has. It is not loaded for this: a program without one has no
 * names that need it more than they need to be left alone. */
static Demangle find_demangle(void) {
  static Demangle demangle;
  static int looked;
  if (looked) return demangle;
  looked = 1;
  static const char* const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
  void* symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries && symbol == NULL; ++i) {
    void* library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL) symbol = dlsym(library, "__cxa_demangle");
  }
  memcpy(&demangle, &symbol, sizeof demangle);
  return demangle;
}

static uint32_t name_of(const char* mangled) {
  const Demangle demangle = find_demangle();
  if (demangle == NULL || strncmp(mangled, "_Z", 2) != 0 || strnlen(mangled, LONGEST) == LONGEST)
    return file_name(mangled);
  int status = 0;
  char* readable = demangle(mangled, NULL, NULL, &status);
  const uint32_t id = file_name(status == 0 && readable != NULL ? readable : mangled);
  free(readable);
  return id;
}

uint32_t kernel_name(const char* mangled) {
  if (mangled == NULL) return 0;
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (const char* c = mangled; *c != '\0'; ++c) hash = (hash ^ (uint8_t)*c) * 16777619u;
  const uint32_t at = (hash ^ hash >> 12) % SLOTS;
  if (known[at].mangled != NULL && strcmp(known[at].mangled, mangled) == 0) return known[at].id;
  const uint32_t id = name_of(mangled);
  if (id == 0) return 0;
  free(known[at].mangled);
  known[at].mangled = strdup(mangled);
  known[at].id = id;
  return id;
}
