// Tables of a run file as lists of structs. Internal to traces/run; run_layout.h says which columns there are.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "traces/run/file/machine_layout.h"
#include "traces/run/file/run_layout.h"

namespace memwall {

class TableReader {
 public:
  TableReader(const ReadContext& context, hid_t file) : context_(context), file_(file) {}

  // Only the columns `wanted`, all if it is empty.
  template <class T>
  void rows(const std::string& name, T* first, std::size_t count, const std::vector<std::string_view>& wanted = {}) {
    if (wanted.empty()) return read_table(context_, file_, name, layout_of<T>(), first, count);
    TableLayout some = layout_of<T>();
    std::erase_if(some.columns, [&](const ColumnLayout& column) {
      return std::find(wanted.begin(), wanted.end(), column.name) == wanted.end();
    });
    if (some.columns.size() != wanted.size()) throw std::logic_error("a column that '" + name + "' does not have");
    read_table(context_, file_, name, some, first, count);
  }
  template <class T>
  void list(const std::string& name, std::vector<T>& items, const std::vector<std::string_view>& wanted = {}) {
    items.resize(table_rows(context_, file_, name));
    rows(name, items.data(), items.size(), wanted);
  }
  template <class T>
  void one(const std::string& name, T& item) {
    if (table_rows(context_, file_, name) != 1) context_.refuse(fmt::format("table '/{}' must have one row.", name));
    rows(name, &item, 1);
  }
  template <class Owner, class List>
  void owned(const std::string& name, std::vector<Owner>& owners, List list_of) {
    using Item = typename std::remove_cvref_t<decltype(list_of(owners.front()))>::value_type;
    std::vector<Owned<Item>> items;
    list(name, items);
    for (const Owned<Item>& item : items) {
      if (item.owner >= owners.size())
        context_.refuse(fmt::format("table '/{}' names owner {} of {}.", name, item.owner, owners.size()));
      list_of(owners[item.owner]).push_back(item.item);
    }
  }
  bool has(const std::string& name) { return has_table(context_, file_, name); }
  std::size_t count(const std::string& name) { return table_rows(context_, file_, name); }

 protected:
  const ReadContext& context_;
  hid_t file_;
};

}  // namespace memwall
