#include "cli/print/recipe_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace memwall {
namespace {

bool is_assumed(const RecipeItem& item) { return !item.setting.empty(); }

}  // namespace

std::string recipe_text(const std::vector<RecipeItem>& recipe) {
  const bool assumed = std::any_of(recipe.begin(), recipe.end(), is_assumed);
  std::string text = assumed ? "recipe, assumed where not given: " : "recipe, as captured: ";
  for (const RecipeItem& item : recipe) {
    if (&item != &recipe.front()) text += ", ";
    text += item.value;
    if (is_assumed(item)) text += fmt::format(" ({})", item.setting);
  }
  return text;
}

Table recipe_table(const std::vector<RecipeItem>& recipe) {
  const bool assumed = std::any_of(recipe.begin(), recipe.end(), is_assumed);
  Table t{.name = "recipe",
          .title = assumed ? "Recipe: assumed, not measured; change it with WORKLOAD:KEY=VALUE, or --set KEY=VALUE of "
                             "memwall generate"
                           : "Recipe, as far as the capture shows it",
          .columns = {"what", "value", "setting"},
          .headings = {"", "", assumed ? "setting" : ""},
          .rows = {},
          .wrap = true};
  for (const RecipeItem& item : recipe) t.rows.push_back({cell(item.what), cell(item.value), cell(item.setting)});
  return t;
}

}  // namespace memwall
