#include "study/python/binding/column_table.h"

namespace memwall {

void ArrowColumn::add_unknown() {
  std::visit(
      [](auto& list) {
        using Values = std::decay_t<decltype(list)>;
        if constexpr (std::is_same_v<Values, TextValues>)
          list.add("");
        else if constexpr (std::is_same_v<Values, BitValues>)
          list.add(false);
        else
          list.push_back({});
      },
      values);
  known.add(false);
  ++unknown;
}

}  // namespace memwall
