// Begins the page: the state, what changes it, and the views.
import "uplot/dist/uPlot.min.css";
import "./style/colours.css";
import "./style/base.css";
import "./style/data.css";
import "./style/page.css";
import { render } from "preact";
import { isRecorded } from "./api.ts";
import { Control, provideControl } from "./control.ts";
import { dispatch } from "./keys.ts";
import { VIEW, type State, type Theme } from "./state.ts";
import { provide, Store } from "./store.ts";
import { App } from "./view/app.tsx";

const THEME = "stepscope-theme";

// The token has done its work: the cookie is there. It must not stay in the address, the history or a shared link.
if (new URLSearchParams(location.search).has("token"))
  history.replaceState(null, "", `${location.pathname}${location.hash}`);

function savedTheme(): Theme {
  try {
    const saved = localStorage.getItem(THEME);
    return saved === "light" || saved === "dark" ? saved : "auto";
  } catch {
    return "auto";
  }
}

const system = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = (theme: Theme) => theme === "dark" || (theme === "auto" && system.matches);

const theme = savedTheme();
const state: State = {
  view: { ...VIEW, route: { page: "runs" } },
  back: [],
  theme,
  dark: isDark(theme),
  help: false,
  paused: false,
  missed: false,
  cursor: null,
  row: -1,
  runs: null,
  runs_problem: null,
  run: null,
  compared: null,
  chosen: [],
  link: { state: "idle" },
  now: performance.now(),
  recorded: isRecorded,
  said: "",
};
document.documentElement.dataset["theme"] = state.dark ? "dark" : "light";
const store = provide(new Store(state));

let shown = theme;
function follow(): void {
  const { theme, dark } = store.get();
  if (theme !== shown) {
    shown = theme;
    try {
      localStorage.setItem(THEME, theme);
    } catch {
      // A browser that keeps nothing: the theme lasts as long as the page.
    }
  }
  if (isDark(theme) === dark) return;
  document.documentElement.dataset["theme"] = isDark(theme) ? "dark" : "light";
  store.set({ dark: isDark(theme) });
}
store.subscribe(follow);
system.addEventListener("change", follow);

provideControl(new Control(store));
window.addEventListener("keydown", (event) => dispatch(event, store.get()));
render(<App />, document.getElementById("page")!);
