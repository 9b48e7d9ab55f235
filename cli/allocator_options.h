// What several verbs take as --allocator and --alloc-conf.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace memwall {

inline void add_allocator_options(CLI::App& app, std::string& allocator, std::string& settings) {
  app.add_option("--allocator", allocator,
                 "Of GPU memory: pytorch (the caching allocator), ideal (bytes), cuda_async (cudaMallocAsync), "
                 "stitching (after GMLake), arena (offsets planned ahead)")
      ->capture_default_str();
  app.add_option("--alloc-conf", settings,
                 "Settings of the caching allocator, as PYTORCH_ALLOC_CONF: "
                 "expandable_segments:True,max_split_size_mb:256");
}

}  // namespace memwall
