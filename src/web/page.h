// The page's files, read once. What a browser can ask for is what was in the folder then: no path
// of a request is ever opened.
//
// Thread safety: const after load().
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "serve/loop.h"

namespace stepscope::web {

class Page {
 public:
  static constexpr size_t kMaxBytes = 32 << 20;  // of all files

  // index.html and assets/*; an empty or missing folder gives a page that says what to do.
  static Page load(const std::string& folder);

  // "/" and "/assets/...": 404 for what there is not.
  serve::Reply answer(std::string_view path) const;
  bool has(std::string_view path) const;

 private:
  struct File {
    std::string content_type, bytes;
  };
  std::map<std::string, File, std::less<>> files_;  // by path, "/index.html"
};

}  // namespace stepscope::web
