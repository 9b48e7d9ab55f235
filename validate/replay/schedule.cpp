#include "validate/replay/schedule.h"

namespace memwall {}
