// A list that grows at the back and is trimmed at the front, in one piece of memory: what is kept of a run is walked
// far more often than it changes, and thousands of ranks are walked at the speed of memory.
//
//   items_   | trimmed, reused later | first ... last | room |
//             ^ 0                     ^ begin_
//
// Thread safety: as a std::vector. Invariants: adding or trimming one item takes constant time on average; addresses
// and iterators are void after either.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace stepscope {

template <typename T>
class KeptList {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  KeptList() = default;
  // A copy has no room to spare.
  KeptList(const KeptList& other) : items_(other.begin(), other.end()) {}
  KeptList& operator=(const KeptList& other) {
    if (this != &other) *this = KeptList(other);
    return *this;
  }
  KeptList(KeptList&& other) noexcept
      : items_(std::move(other.items_)), begin_(std::exchange(other.begin_, 0)) {
    other.items_.clear();
  }
  KeptList& operator=(KeptList&& other) noexcept {
    items_ = std::move(other.items_);
    begin_ = std::exchange(other.begin_, 0);
    other.items_.clear();
    return *this;
  }
  ~KeptList() = default;

  size_t size() const { return items_.size() - begin_; }
  bool empty() const { return size() == 0; }
  T* begin() { return items_.data() + begin_; }
  T* end() { return items_.data() + items_.size(); }
  const T* begin() const { return items_.data() + begin_; }
  const T* end() const { return items_.data() + items_.size(); }
  auto rbegin() { return std::reverse_iterator(end()); }
  auto rend() { return std::reverse_iterator(begin()); }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }
  T& operator[](size_t at) { return begin()[at]; }
  const T& operator[](size_t at) const { return begin()[at]; }
  T& front() { return *begin(); }
  const T& front() const { return *begin(); }
  T& back() { return items_.back(); }
  const T& back() const { return items_.back(); }

  void push_back(T item) {
    make_room();
    items_.push_back(std::move(item));
  }
  T& emplace_back(T item = {}) {
    push_back(std::move(item));
    return back();
  }
  void pop_front() {
    items_[begin_++] = T{};  // what it holds elsewhere is freed now
    if (empty())
      clear();
    else if (begin_ > 3 * size() + 16)
      shrink();
  }
  void erase(const T* item) { items_.erase(items_.begin() + (item - items_.data())); }
  void resize(size_t size) { items_.resize(begin_ + size); }
  void clear() {
    items_.clear();
    begin_ = 0;
  }

 private:
  void shrink() {
    std::vector<T> fewer;
    fewer.reserve(size() + size() / 4 + 4);
    fewer.assign(std::make_move_iterator(begin()), std::make_move_iterator(end()));
    items_ = std::move(fewer);
    begin_ = 0;
  }

  // A quarter more at a time, and what was trimmed is used again before that: little is held in vain.
  void make_room() {
    if (items_.size() < items_.capacity()) return;
    if (begin_ > items_.size() / 8) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(begin_));
      begin_ = 0;
    } else {
      items_.reserve(items_.size() + items_.size() / 4 + 4);
    }
  }

  std::vector<T> items_;
  size_t begin_ = 0;
};

}  // namespace stepscope
