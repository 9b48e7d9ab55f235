// The SQLite file of a journal, and what is asked of it. Internal to study/sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace memwall {

struct PointRecord;

// Numbers as text that reads back as the same bits; nothing where it is none of that.
std::string fields_text(const PointRecord& record);
std::optional<std::vector<std::pair<std::string, double>>> parse_fields(std::string_view text);

class JournalDatabase {
 public:
  enum class Opening : bool { or_make, existing };
  // Throws InputError where the file is no journal of this version, or cannot be opened, or is not there.
  explicit JournalDatabase(const std::filesystem::path& path, Opening opening = Opening::or_make);
  ~JournalDatabase();
  JournalDatabase(const JournalDatabase&) = delete;
  JournalDatabase& operator=(const JournalDatabase&) = delete;

  bool run(const char* text);    // statements without results: did all work?
  int number(const char* text);  // of a query with one number; -1 where it fails
  std::string message() const;   // what went wrong last
  sqlite3* handle() const { return handle_; }

 private:
  [[noreturn]] void fail(const std::filesystem::path& path, const char* what);
  void prepare(const std::filesystem::path& path);
  void require_own(const std::filesystem::path& path);

  sqlite3* handle_ = nullptr;
};

class JournalStatement {
 public:
  enum class Outcome { row, done, failed };

  JournalStatement(const JournalDatabase& database, const char* text);
  ~JournalStatement();
  JournalStatement(const JournalStatement&) = delete;
  JournalStatement& operator=(const JournalStatement&) = delete;

  explicit operator bool() const { return statement_ != nullptr; }
  // Parameters count from 1, columns from 0.
  void bind(int at, const std::string& text);
  void bind(int at, std::int64_t number);
  Outcome step();
  void reset();  // to be stepped again with other parameters
  std::string text(int column) const;
  std::int64_t number(int column) const;

 private:
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace memwall
