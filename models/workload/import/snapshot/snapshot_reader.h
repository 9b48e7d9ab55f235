// torch.cuda.memory._dump_snapshot files (pickle, also .gz) become memory recordings.
//
// The pickle is read by import/pickle_reader.h, which knows the opcodes that plain data needs and refuses every other:
// nothing in the file is ever called. Format: torch.cuda.memory._snapshot(); versions with and without time_us, block
// addresses, expandable segments, settings, annotations.
#pragma once

#include <filesystem>

#include "models/workload/memory/recording.h"

namespace memwall {

// Does the file begin like a pickle (possibly gzip-compressed)? Reads two bytes of the text.
bool is_pickle(const std::filesystem::path& path);

// Streams the file: memory is a fraction of its size. Throws InputError naming file, byte, found and expected: a
// damaged or truncated file, an opcode that plain data does not need (with its name), a pickle that is no snapshot,
// a field of the wrong type. What only an unknown version has is skipped and noted.
MemoryRecording read_snapshot(const std::filesystem::path& path);

}  // namespace memwall
