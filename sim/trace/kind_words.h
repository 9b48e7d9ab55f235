// Kinds of storages as words in a sentence.
#pragma once

#include "sim/trace/storage.h"

namespace memwall {

const char* plural(StorageKind kind);  // "optimizer states"

}  // namespace memwall
