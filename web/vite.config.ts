// Builds the page into the Python package: static files only, nothing inline, so that the server's content security
// policy can be as strict as it is (docs/reference/api.md).
import { defineConfig } from "vite";

export default defineConfig({
  base: "/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../python/stepscope/page",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: false,
    target: "es2022",
    reportCompressedSize: false,
  },
});
