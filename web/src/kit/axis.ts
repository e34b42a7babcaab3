// An axis: values to pixels and back, of the whole or of the part that is zoomed to.
import { scaleLinear, scaleLog, type ScaleContinuousNumeric } from 'd3-scale';
import { svg } from './elements';
import { clamp } from './numbers';
import { ticks, type Tick } from './ticks';
import { fitted, whole, type Box, type Window } from './zoom';

const furthest = 1e6; // lengths of the axis: beyond, paths are cut anyway, and their numbers stay short
const shortest = 1e-9; // window: fewer digits are left for ticks

export class Axis {
  window: Window = whole;
  private readonly all: ScaleContinuousNumeric<number, number>;
  private seen: ScaleContinuousNumeric<number, number>;

  // Values from ends[0] to ends[1] lie from `from` to `to` pixels.
  constructor(
    ends: readonly [number, number],
    readonly log: boolean,
    readonly from: number,
    readonly to: number,
    readonly counts = false, // has ticks at whole numbers only; not with log
  ) {
    this.all = this.seen = (log ? scaleLog : scaleLinear)(ends, [from, to]);
  }

  // The values at the ends of what is seen.
  ends(): [number, number] {
    return this.seen.domain() as [number, number];
  }

  shows(value: number): boolean {
    return Math.abs(value) <= 1e300 && (!this.log || value >= 1e-300);
  }

  at(value: number): number {
    const reach = furthest * Math.abs(this.to - this.from);
    return clamp(this.seen(value), this.from - reach, this.from + reach);
  }

  // Where a value is when all is seen.
  wholeAt(value: number): number {
    return this.all(value);
  }

  value(pixel: number): number {
    return this.seen.invert(pixel);
  }

  // The share of the whole at a pixel of what is seen.
  place(pixel: number): number {
    const { low, high } = this.window;
    return low + ((pixel - this.from) / (this.to - this.from)) * (high - low);
  }

  // Pixels as a share of the whole.
  share(pixels: number): number {
    return (pixels / (this.to - this.from)) * (this.window.high - this.window.low);
  }

  show(window: Window): void {
    this.window = fitted(window, shortest);
    if (this.window === whole) this.seen = this.all;
    else {
      const value = (share: number): number => this.all.invert(this.from + share * (this.to - this.from));
      this.seen = this.all.copy().domain([value(this.window.low), value(this.window.high)]);
    }
  }
}

// What a box chooses of an axis; of one that is nearly a line across it, everything that is seen.
export function chosen(axis: Axis, from: number, length: number, thinnest: number): Window {
  if (length <= thinnest) return axis.window;
  const ends = [axis.place(from), axis.place(from + length)];
  return { low: Math.min(...ends), high: Math.max(...ends) };
}

export function tickText(tick: Tick, attributes: Record<string, string | number>): SVGTextElement {
  return svg(
    'text',
    attributes,
    tick.label,
    tick.power ? svg('tspan', { dy: -5, 'font-size': 9.5 }, tick.power) : null,
  );
}

// The path of the lines through a plot at its ticks, and the labels beside it.
export function drawAxis(
  axis: Axis,
  horizontal: boolean,
  { x, y, width, height }: Box,
  marks = ticks(axis, horizontal),
) {
  let grid = '';
  const labels = marks.map(tick => {
    const at = axis.at(tick.value);
    grid += horizontal ? `M${at.toFixed(1)} ${y + height}V${y}` : `M${x} ${at.toFixed(1)}H${x + width}`;
    return tickText(
      tick,
      horizontal
        ? { x: at, y: y + height + 18, 'text-anchor': 'middle' }
        : { x: x - 8, y: at + 4, 'text-anchor': 'end' },
    );
  });
  return { grid, labels };
}
