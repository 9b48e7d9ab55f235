/* Names of kernels as people write them, where the program has the C++ runtime loaded; else as the linker has them. */
#ifndef MEMWALL_INJECT_KERNEL_NAME_H
#define MEMWALL_INJECT_KERNEL_NAME_H

#include <stdint.h>

/* The file's number for a kernel's name, written out if it is new; 0 for NULL. */
uint32_t kernel_name(const char* mangled);

#endif
