// The WebSocket of one run: open while it is wanted, tried again with growing pauses when it is lost.
//
// Invariant: after close() nothing is called any more.
import type { Frame } from "./api.ts";

export interface Watcher {
  opened(): void;
  frame(frame: Frame): void;
  lost(retry_ms: number): void;
}

const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 8000;

export class LiveSocket {
  private socket: WebSocket | null = null;
  private timer = 0;
  private pause_ms = FIRST_PAUSE_MS;
  private closed = false;
  private readonly path: string;
  private readonly watcher: Watcher;

  constructor(path: string, watcher: Watcher) {
    this.path = path;
    this.watcher = watcher;
    this.open();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  // Now, when it waits: the page came back, or the network.
  hurry(): void {
    if (this.timer === 0) return;
    clearTimeout(this.timer);
    this.open();
  }

  private open(): void {
    this.timer = 0;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${this.path}`);
    this.socket = socket;
    socket.onopen = () => {
      if (this.closed) return;
      this.pause_ms = FIRST_PAUSE_MS;
      this.watcher.opened();
    };
    socket.onmessage = (message) => {
      if (this.closed || typeof message.data !== "string") return;
      let frame: Frame;
      try {
        frame = JSON.parse(message.data) as Frame;
      } catch {
        return;
      }
      this.watcher.frame(frame);
    };
    socket.onclose = () => {
      if (this.closed) return;
      // A little unlike each other, so that fifty pages do not come back at the same moment.
      const pause_ms = this.pause_ms * (0.8 + 0.4 * Math.random());
      this.pause_ms = Math.min(this.pause_ms * 2, LONGEST_PAUSE_MS);
      this.timer = window.setTimeout(() => this.open(), pause_ms);
      this.watcher.lost(pause_ms);
    };
  }
}
