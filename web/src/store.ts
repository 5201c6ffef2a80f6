// Holds the state and tells the views, at most once a frame.
//
// Invariant: a view hears only of what it selected; what a select function gives is compared by identity.
import { useEffect, useReducer, useRef } from "preact/hooks";
import type { State } from "./state.ts";

type Listener = () => void;

export class Store {
  private state: State;
  private readonly listeners = new Set<Listener>();
  private pending = false;

  constructor(state: State) {
    this.state = state;
  }

  get = (): State => this.state;

  set(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(this.flush);
  }

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private flush = (): void => {
    this.pending = false;
    for (const listener of [...this.listeners]) listener();
  };
}

let store: Store;
export const provide = (made: Store) => (store = made);
export const theStore = () => store;

export function useSelect<T>(select: (state: State) => T): T {
  const [, again] = useReducer<number, void>((count) => count + 1, 0);
  const selector = useRef(select);
  selector.current = select;
  const value = select(store.get());
  const last = useRef(value);
  last.current = value;
  useEffect(() => {
    const check = () => {
      if (!Object.is(selector.current(store.get()), last.current)) again();
    };
    check(); // what changed between the drawing and now
    return store.subscribe(check);
  }, []);
  return value;
}
