#include "model/kept_list.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

namespace stepscope {
namespace {

// Against the standard's, whatever is done to it.
TEST(KeptList, IsAsADeque) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  KeptList<int> list;
  std::deque<int> same;
  for (int i = 0; i < 20'000; ++i) {
    const auto what = random() % 100;
    if (what < 55 || same.empty()) {
      list.push_back(i);
      same.push_back(i);
    } else if (what < 96) {
      list.pop_front();
      same.pop_front();
    } else if (what == 96) {
      const size_t size = random() % (same.size() + 1);
      list.resize(size);
      same.resize(size);
    } else if (what == 97) {
      KeptList<int> copy = list;
      list = std::move(copy);
    } else if (what == 98) {
      const size_t at = random() % same.size();
      list.erase(list.begin() + at);
      same.erase(same.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (i % 7 == 0) {
      list.clear();
      same.clear();
    }
    ASSERT_EQ(list.size(), same.size());
    ASSERT_TRUE(std::equal(list.begin(), list.end(), same.begin(), same.end()));
    ASSERT_TRUE(std::equal(list.rbegin(), list.rend(), same.rbegin(), same.rend()));
  }
}

TEST(KeptList, FreesWhatItTrimsAndHoldsLittleInVain) {
  KeptList<std::shared_ptr<int>> list;
  std::weak_ptr<int> first;
  for (int i = 0; i < 10'000; ++i) {
    auto item = std::make_shared<int>(i);
    if (i == 0) first = item;
    list.push_back(std::move(item));
    if (list.size() > 200) list.pop_front();
    ASSERT_EQ(*list.back(), i);
  }
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(*list.front(), 9'800);
  const auto* held = list.begin();
  EXPECT_LE(list.end() - held, 200);
}

}  // namespace
}  // namespace stepscope
