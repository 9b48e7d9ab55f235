#include "cli/gaps_option.h"

namespace memwall {

void add_gaps_option(CLI::App& app, bool& accept_gaps) {
  app.add_flag(
      "--accept-gaps", accept_gaps,
      "Take a capture with gaps beyond 5 % (kernels missing, waits without a cause), or of which most is missing: its "
      "step time is wrong, or means nothing");
}

}  // namespace memwall
