// Round values for axes, by the rule of src/report/axis.cc: as many of 1, 2 or 5 times a power of ten as fit without
// their labels touching; on long logarithmic axes powers of ten. tests/browser/kit_test.mjs compares both.
import type { Axis } from './axis';
import { plain, powerOfTen } from './numbers';
import { textWidth } from './text';

export interface Tick {
  value: number;
  label: string;
  power?: string; // raised, after the label
  width: number;
}
type Fits = (found: Tick[]) => boolean;

const font = 12.5,
  raisedFont = 9.5;

function plainTick(value: number, decimals: number): Tick {
  const label = plain(value, decimals);
  return { value, label, width: textWidth(label, font) };
}

function powerTick(value: number, mantissa: string, exponent: number): Tick {
  const label = mantissa === '1' ? '10' : `${mantissa}×10`,
    power = plain(exponent, 0);
  return { value, label, power, width: textWidth(label, font) + textWidth(power, raisedFont) };
}

// index · step with step = factor · 10^exponent.
function linearTick(index: number, step: number, exponent: number, largest: number): Tick {
  const value = index * step;
  if (index === 0) return plainTick(0, 0);
  if (exponent >= -4 && largest < 1e7) return plainTick(value, -exponent);
  const power = Math.floor(Math.log10(largest));
  return powerTick(value, plain(value / powerOfTen(power), power - exponent), power);
}

function linearTicks(low: number, high: number, fits: Fits, counts = false): Tick[] {
  const largest = Math.max(Math.abs(low), Math.abs(high)),
    first = Math.floor(Math.log10((high - low) / 20));
  for (let exponent = first; exponent < first + 4; ++exponent) {
    for (const factor of [1, 2, 5]) {
      const step = factor * powerOfTen(exponent),
        found = [];
      if (counts && step < 1) continue;
      const last = Math.floor(high / step + 1e-6);
      for (let index = Math.ceil(low / step - 1e-6); index <= last; ++index)
        found.push(linearTick(index, step, exponent, largest));
      if (fits(found)) return found;
    }
  }
  return [];
}

function logTicks(low: number, high: number, fits: Fits): Tick[] {
  const from = Math.log10(low),
    to = Math.log10(high),
    brief = from > -4.5 && to < 6.5;
  const every = (decades: number, factors: number[]): Tick[] => {
    const found = [];
    for (let power = decades * Math.floor(from / decades); power <= to; power += decades) {
      for (const factor of factors) {
        const place = power + Math.log10(factor),
          value = factor * powerOfTen(power);
        if (place < from - 1e-9 || place > to + 1e-9) continue;
        found.push(brief ? plainTick(value, -power) : powerTick(value, String(factor), power));
      }
    }
    return found;
  };
  if (to - from < 0.7) return linearTicks(low, high, fits); // too short for round numbers to be near
  if (to - from < 3) {
    const found = every(1, [1, 2, 5]);
    if (fits(found)) return found;
  }
  for (const decades of [1, 2, 5, 10, 20, 50, 100, 200, 500]) {
    const found = every(decades, [1]);
    if (fits(found)) return found;
  }
  return [];
}

export function ticks(axis: Axis, horizontal: boolean): Tick[] {
  const fits: Fits = found =>
    found.every((tick, i) => {
      if (i === 0) return true;
      const before = found[i - 1]!;
      const room = horizontal ? Math.max(48, (before.width + tick.width) / 2 + 14) : 30;
      return Math.abs(axis.at(tick.value) - axis.at(before.value)) >= room;
    });
  const ends = axis.ends();
  return axis.log ? logTicks(...ends, fits) : linearTicks(...ends, fits, axis.counts);
}
