// `loaders` of summary.json. Pure.
#pragma once

#include <boost/json/array.hpp>

#include "report/summary.h"

namespace stepscope::report {

boost::json::array loaders_json(const Summary& summary);

}  // namespace stepscope::report
