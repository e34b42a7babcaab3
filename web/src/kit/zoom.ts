// What is seen of a whole, and the pointer that chooses it: a box, Control and the wheel, Shift and a drag.
import { svg } from './elements';
import { clamp } from './numbers';

// Shares of the whole along one direction.
export interface Window {
  readonly low: number;
  readonly high: number;
}
export const whole: Window = { low: 0, high: 1 };

// Never beyond the whole, and never shorter than `least`.
export function fitted({ low, high }: Window, least: number): Window {
  const size = clamp(high - low, least, 1);
  if (size === 1) return whole;
  const begin = clamp((low + high - size) / 2, 0, 1 - size);
  return { low: begin, high: begin + size };
}

// `around` stays where it is seen.
export function zoomed({ low, high }: Window, factor: number, around = (low + high) / 2): Window {
  return { low: around - (around - low) / factor, high: around + (high - around) / factor };
}

export function moved({ low, high }: Window, by: number): Window {
  const step = clamp(by, -low, 1 - high);
  return { low: low + step, high: high + step };
}

export interface Spot {
  x: number;
  y: number;
}
export interface Box extends Spot {
  width: number;
  height: number;
}

// Where the pointer is, in the units of the drawing.
export function inside(drawing: SVGSVGElement, event: MouseEvent): Spot {
  return new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM()!.inverse());
}

export interface ZoomTarget {
  frame(at: Spot): Box | undefined; // in which a drag that begins here chooses; none: it does not begin
  boxes?: boolean; // false: drags belong to others
  onBox(box: Box): void;
  onWheel(factor: number, at: Spot): void;
  onReset(): void;
  onPan?(by: Spot): void;
  onDrag?(): void; // at every move of a box or a pan
}

export const thinnest = 5; // pixels: a box that is thinner is a line, and a shorter drag is a click

export function listenZoom(element: SVGElement, drawing: SVGSVGElement, target: ZoomTarget): { dragging(): boolean } {
  let start: Spot | null = null,
    last: Spot | null = null,
    frame: Box | undefined,
    box: Box | null = null,
    panning = false;
  const selection = svg('rect', { class: 'selection' });
  const within = (at: Spot): Spot => ({
    x: clamp(at.x, frame!.x, frame!.x + frame!.width),
    y: clamp(at.y, frame!.y, frame!.y + frame!.height),
  });
  element.addEventListener('pointerdown', event => {
    if (
      target.boxes === false ||
      event.button !== 0 ||
      event.pointerType === 'touch' ||
      (event.target as Element).closest('.entry')
    )
      return;
    const at = inside(drawing, event);
    frame = target.frame(at);
    if (!frame) return;
    start = last = at;
    panning = event.shiftKey && target.onPan !== undefined;
  });
  element.addEventListener('pointermove', event => {
    if (!start || !last) return;
    const at = inside(drawing, event);
    if (panning) {
      target.onPan!({ x: at.x - last.x, y: at.y - last.y });
      last = inside(drawing, event); // of what is seen now
      target.onDrag?.();
      return;
    }
    const { x, y } = within(at);
    if (!box && Math.hypot(x - start.x, y - start.y) <= thinnest) return;
    if (!box) element.setPointerCapture(event.pointerId);
    box = {
      x: Math.min(x, start.x),
      y: Math.min(y, start.y),
      width: Math.abs(x - start.x),
      height: Math.abs(y - start.y),
    };
    for (const [name, value] of Object.entries(box)) selection.setAttribute(name, String(value));
    drawing.append(selection);
    target.onDrag?.();
  });
  const end = (event: PointerEvent): void => {
    const chosen = box;
    selection.remove();
    start = last = box = null;
    panning = false;
    if (chosen && event.type === 'pointerup') target.onBox(chosen);
  };
  element.addEventListener('pointerup', end);
  element.addEventListener('pointercancel', end);
  element.addEventListener('dblclick', event => {
    if (!(event.target as Element).closest('.entry')) target.onReset();
  });
  element.addEventListener(
    'wheel',
    event => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      const at = inside(drawing, event);
      if (!target.frame(at)) return;
      event.preventDefault();
      target.onWheel(event.deltaY < 0 ? 1.25 : 0.8, at);
    },
    { passive: false },
  );
  return { dragging: () => box !== null || panning };
}
