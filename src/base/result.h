// Result<T>: a value, or an error with what failed and a hint for the user.
//
// Thread safety: a plain value. Invariant: exactly one of value and error is present. Nothing of
// ours throws; the Python binding turns an Error into an exception, the command line into two lines
// of text.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace stepscope {

struct Error {
  std::string message;  // what failed, with the value that made it fail
  std::string hint;     // a command or setting to try, may be empty
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit on purpose

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  T& operator*() { return std::get<T>(state_); }
  const T& operator*() const { return std::get<T>(state_); }
  T* operator->() { return &std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }
  const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Nothing {};
using Status = Result<Nothing>;
inline Status ok() { return Nothing{}; }

}  // namespace stepscope
