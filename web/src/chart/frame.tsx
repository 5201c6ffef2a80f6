// What all charts share: the place of the plot, the crosshair, the brush. Plots of one width lie exactly one above
// the other, so that a step is at the same place in each.
//
// Invariant: moving the crosshair draws nothing anew but the crosshair itself.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { act } from "../control.ts";
import { theStore } from "../store.ts";

export const LEFT = 56; // px of labels before the plot
export const RIGHT = 10;
const LEAST_BRUSH = 6; // px; less is a click

export interface Domain {
  from: number;
  to: number;
}

export function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current!;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

interface Props {
  label: string; // for the screen reader
  height: number;
  domain: Domain; // of the plot, in its own unit
  toStep?: (value: number) => number | null; // steps where the unit is another
  toValue?: (step: number) => number | null;
  onHover?: (y: number | null) => void; // px from the top
  onPick?: (y: number) => void; // a click
  children: (width: number) => ComponentChildren;
}

const same = (value: number) => value;

export function Frame({
  label,
  height,
  domain,
  toStep = same,
  toValue = same,
  onHover,
  onPick,
  children,
}: Props) {
  const [ref, width] = useWidth();
  const cross = useRef<HTMLDivElement>(null);
  const brush = useRef<HTMLDivElement>(null);
  const down = useRef<number | null>(null);
  const plot = Math.max(1, width - LEFT - RIGHT);
  const now = useRef({ domain, toStep, toValue, plot });
  now.current = { domain, toStep, toValue, plot };

  const place = () => {
    const { domain, toValue, plot } = now.current;
    const step = theStore().get().cursor;
    const value = step === null ? null : toValue(step);
    const x = value === null ? -1 : ((value - domain.from) / (domain.to - domain.from)) * plot;
    const line = cross.current!;
    line.hidden = !(x >= 0 && x <= plot);
    if (!line.hidden) line.style.transform = `translateX(${x.toFixed(1)}px)`;
  };
  useEffect(() => {
    let last: number | null = null;
    return theStore().subscribe(() => {
      const { cursor } = theStore().get();
      if (cursor !== last) {
        last = cursor;
        place();
      }
    });
  }, []);
  useLayoutEffect(place);

  const at = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return { x: Math.min(Math.max(event.clientX - box.left, 0), plot), y: event.clientY - box.top };
  };
  const value = (x: number) => domain.from + (x / plot) * (domain.to - domain.from);
  const showBrush = (x: number | null) => {
    const element = brush.current!;
    element.hidden = x === null || down.current === null || Math.abs(x - down.current) < LEAST_BRUSH;
    if (element.hidden) return;
    element.style.left = `${Math.min(x!, down.current!)}px`;
    element.style.width = `${Math.abs(x! - down.current!)}px`;
  };

  return (
    <div class="frame" ref={ref} role="img" aria-label={label} style={{ height: `${height}px` }}>
      {width > 0 && children(width)}
      <div
        class="over"
        style={{ left: `${LEFT}px`, width: `${plot}px`, height: `${height}px` }}
        onPointerMove={(event) => {
          const { x, y } = at(event);
          act().cursor(toStep(value(x)));
          onHover?.(y);
          showBrush(x);
        }}
        onPointerLeave={() => {
          if (down.current !== null) return;
          act().cursor(null);
          onHover?.(null);
        }}
        onPointerDown={(event) => {
          if (event.button !== 0 || event.pointerType === "touch") return;
          (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
          down.current = at(event).x;
        }}
        onPointerUp={(event) => {
          const { x, y } = at(event);
          const begin = down.current;
          showBrush(null);
          down.current = null;
          brush.current!.hidden = true;
          if (begin === null) return;
          if (Math.abs(x - begin) < LEAST_BRUSH) return onPick?.(y);
          const [from, to] = [toStep(value(Math.min(begin, x))), toStep(value(Math.max(begin, x)))];
          if (from !== null && to !== null) act().zoom(from, to);
        }}
        onPointerCancel={() => {
          down.current = null;
          brush.current!.hidden = true;
        }}
        onDblClick={() => act().zoomBack()}
      >
        <div class="brush" ref={brush} hidden />
        <div class="cross" ref={cross} hidden />
      </div>
    </div>
  );
}

// A canvas as sharp as the screen, drawn again when `draw` is another function.
export function Canvas({
  width,
  height,
  draw,
}: {
  width: number;
  height: number;
  draw: (on: CanvasRenderingContext2D) => void;
}) {
  const ref = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const canvas = ref.current!;
    const scale = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
    }
    const on = canvas.getContext("2d")!;
    on.setTransform(scale, 0, 0, scale, 0, 0);
    on.clearRect(0, 0, width, height);
    draw(on);
  }, [width, height, draw]);
  return <canvas class="fill" ref={ref} style={{ width: `${width}px`, height: `${height}px` }} />;
}
