// Rows of a trace to chunks of the file, and back. Knows the schema, not the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall::file {
class Header;
class Strings;
class Shapes;
class Storages;
class Ops;
class Uses;
}  // namespace memwall::file

namespace memwall {

// Rows per chunk: enough for columns to compress, few enough for the rows to stay in a cache
// while one column after the other is filled in.
inline constexpr std::size_t kChunkRows = 8192;

void encode(const Trace& trace, file::Header* out);
void encode(const StringTable& strings, std::size_t first, std::size_t count, file::Strings* out);
void encode(const ShapeTable& shapes, std::size_t first, std::size_t count, file::Shapes* out);
void encode(std::span<const Storage> storages, file::Storages* out);
// `uses_end`: where the uses of the op before the first of `ops` end; updated.
void encode(std::span<const Op> ops, std::uint32_t& uses_end, file::Ops* out);
void encode(std::span<const Use> uses, file::Uses* out);

// Each appends to `trace` and throws ColumnError where the chunk has no meaning.
void decode(const file::Header& in, Trace& trace);
void decode(const file::Strings& in, Trace& trace);
void decode(const file::Shapes& in, Trace& trace);
void decode(const file::Storages& in, Trace& trace);
void decode(const file::Ops& in, std::uint32_t& uses_end, Trace& trace);
void decode(const file::Uses& in, Trace& trace);

}  // namespace memwall
