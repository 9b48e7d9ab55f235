// A file without a name in the temporary folder, for what must be gone back in. Internal to files.
#pragma once

#include "sim/files/file_descriptor.h"

namespace memwall {

// Open for reading and writing; gone when it is closed, however the program ends. Not open, with errno set, where the
// temporary folder (TMPDIR) takes none.
FileDescriptor unnamed_temporary_file();

}  // namespace memwall
