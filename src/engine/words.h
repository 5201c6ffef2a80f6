// How numbers read inside the engine's sentences: "38 %", "1.2 GB", "8-15". Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepscope::engine {

std::string percent(double share);               // 0.384 -> "38 %", 0.052 -> "5.2 %"
std::string milliseconds(double ms);             // "0.24 ms", "3.1 ms", "31 ms", "2.4 s"
std::string bytes(double count);                 // "64 MB", "1.2 GB"; 1 KB is 1024 bytes
std::string number(double value);                // "2", "1.5"
std::string ranges(std::vector<int32_t> ranks);  // {8, 9, 10, 12} -> "8-10, 12"
std::string plural(int64_t count, const char* one, const char* many);  // "1 step", "3 steps"

}  // namespace stepscope::engine
