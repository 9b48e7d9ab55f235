// Tables of a SQLite file that nobody vouches for, read row by row.
//
// The file is opened for reading only and as one that does not change, without extensions, triggers, views, virtual
// tables or functions; work is bounded by the file's size, so that pages that point at each other end in a sentence.
// Internal to the importers of databases: Nsight Systems', rocprofv3's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace memwall {

// Does a file begin as SQLite's databases do? `raw`: its first bytes.
inline bool is_sqlite(std::string_view raw) { return raw.starts_with(std::string_view("SQLite format 3\0", 16)); }

// One row of a table, its columns asked for by their place among the names given to `read`.
class SqliteRow {
 public:
  SqliteRow(sqlite3_stmt* statement, const std::vector<int>& places) : statement_(statement), places_(places) {}
  bool has(std::size_t column) const;                            // there is such a column, and it is not NULL
  std::optional<std::int64_t> number(std::size_t column) const;  // nothing where it is no whole number
  std::int64_t number(std::size_t column, std::int64_t otherwise) const { return number(column).value_or(otherwise); }
  // Within [0, 2^32 - 2], else `otherwise`.
  std::uint32_t small(std::size_t column, std::uint32_t otherwise) const;
  // At most 64 KiB, as UTF-8 without zero bytes; "" where it is no text. Valid until the next call.
  std::string_view text(std::size_t column) const;

 private:
  sqlite3_stmt* statement_;
  const std::vector<int>& places_;
  mutable std::string text_;
};

class SqliteDatabase {
 public:
  // `expected`: what the file should be, a noun for messages ("export of Nsight Systems"). Throws InputError, as all
  // members do, with the file, the table, what SQLite found and what was expected.
  SqliteDatabase(const std::filesystem::path& path, std::string_view expected);
  ~SqliteDatabase();

  std::vector<std::string> tables() const;  // ordinary ones
  bool has(std::string_view table) const;
  // Hands out every row of a table, in the table's order; nothing where there is no such table. Columns are matched
  // without regard to letter case; `required` of them, from the first on, must exist. Returns the number of rows.
  std::uint64_t read(std::string_view table, const std::vector<std::string_view>& columns, std::size_t required,
                     const std::function<void(const SqliteRow&)>& row) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  [[noreturn]] void fail(const std::string& where) const;
  static int count_work(void* self);
  void list_tables();

  std::filesystem::path path_;
  std::string expected_;
  std::unique_ptr<sqlite3, Close> database_;
  std::vector<std::string> tables_;
  std::uint64_t work_ = 0, most_work_ = 0;  // in thousands of SQLite's instructions
};

}  // namespace memwall
