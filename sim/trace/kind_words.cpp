#include "sim/trace/kind_words.h"

namespace memwall {

const char* plural(StorageKind kind) {
  switch (kind) {
    case StorageKind::parameter:
      return "parameters";
    case StorageKind::gradient:
      return "gradients";
    case StorageKind::optimizer_state:
      return "optimizer states";
    case StorageKind::activation:
      return "activations";
    case StorageKind::input:
      return "inputs";
    case StorageKind::workspace:
      return "workspaces";
    case StorageKind::communication_buffer:
      return "communication buffers";
    default:
      return "storages of unknown kind";
  }
}

}  // namespace memwall
