// Curves over layers or steps as one SVG: panels above each other that share their x axis, a cursor, a legend.
import { scaleLinear, scaleLog } from 'd3-scale';
import { line as lineOf } from 'd3-shape';
import { svg } from '../kit/elements';

export interface Series {
  label: string;
  x?: ArrayLike<number>; // 0, 1, … if left out
  y: ArrayLike<number>;
  colour: string;
  dash?: string; // a second way to tell curves apart
}

export interface Panel {
  title: string;
  scale: 'log' | 'linear';
  // Of a linear axis: its least extent. Of a log axis: where it ends below; what is smaller is drawn on the edge.
  low?: number;
  high?: number;
  height?: number;
  ticks?: number[];
  whole?: boolean; // ticks at whole numbers only
  series: Series[];
}

export interface ChartOptions {
  title: string; // for those who do not see it
  xLabel: string;
  xMax: number;
  width: number;
  panels: Panel[];
  cursor?: number;
  onPick?: (x: number) => void; // a click on a panel
}

const font = 12;
const left = 58, right = 14, panelGap = 16, axisHeight = 40, legendLine = 18;

export function emptyFigure(width: number, height: number, title: string, fontSize = font): SVGSVGElement {
  const drawing = svg('svg', { role: 'img', 'font-family': 'system-ui, sans-serif', 'font-size': fontSize, fill: 'currentColor' });
  drawing.style.maxWidth = '100%';
  drawing.style.height = 'auto';
  resize(drawing, width, height, title);
  return drawing;
}

// Empties a figure for another drawing of it.
export function resize(drawing: SVGSVGElement, width: number, height: number, title: string): void {
  drawing.setAttribute('viewBox', `0 0 ${width} ${height}`);
  drawing.setAttribute('width', String(width));
  drawing.setAttribute('height', String(height));
  drawing.setAttribute('aria-label', title);
  drawing.replaceChildren(svg('title', {}, title));
}

const exponents: Record<string, string> = {
  '-': '⁻', 0: '⁰', 1: '¹', 2: '²', 3: '³', 4: '⁴', 5: '⁵', 6: '⁶', 7: '⁷', 8: '⁸', 9: '⁹',
};
function powerOfTen(value: number): string {
  const power = Math.round(Math.log10(value));
  if (power >= -1 && power <= 2) return String(Number(value.toPrecision(1)));
  return '10' + [...String(power)].map(digit => exponents[digit]).join('');
}

// The legend's entries in lines that fit the width, measured by a width per letter that errs on the wide side.
function legendRows(series: Series[], width: number): Series[][] {
  const rows: Series[][] = [[]];
  let used = 0;
  for (const each of series) {
    const needs = 34 + 6.8 * each.label.length;
    if (used > 0 && used + needs > width) {
      rows.push([]);
      used = 0;
    }
    rows[rows.length - 1]!.push(each);
    used += needs;
  }
  return rows;
}

function verticalScale(panel: Panel, height: number) {
  let low = Infinity, high = -Infinity;
  for (const { y } of panel.series) {
    for (let i = 0; i < y.length; ++i) {
      const value = y[i]!;
      if (!Number.isFinite(value) || (panel.scale === 'log' && value <= 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (panel.scale === 'linear') {
    low = Math.min(low, panel.low ?? low);
    high = Math.max(high, panel.high ?? high);
    if (!(low < high)) [low, high] = [Number.isFinite(low) ? low - 1 : 0, Number.isFinite(low) ? low + 1 : 1];
    const given = low === panel.low && high === panel.high;
    return given ? scaleLinear([low, high], [height, 0]) : scaleLinear([low, high], [height, 0]).nice(4);
  }
  const floor = panel.low ?? 1e-17;
  if (!(low <= high)) [low, high] = [0.1, 1];
  low = Math.max(floor, Math.min(low, high));
  return scaleLog([10 ** Math.floor(Math.log10(low) - 1e-9), 10 ** Math.ceil(Math.log10(Math.max(high, low)) + 1e-9)],
    [height, 0]);
}

function logTicks(domain: number[], height: number): number[] {
  const from = Math.round(Math.log10(domain[0]!)), to = Math.round(Math.log10(domain[1]!));
  const step = Math.max(1, Math.ceil((to - from) / Math.max(2, height / 28)));
  const ticks = [];
  for (let power = to; power >= from; power -= step) ticks.push(10 ** power);
  return ticks;
}

export function drawChart(options: ChartOptions): SVGSVGElement {
  const { width, panels } = options;
  const plotWidth = Math.max(80, width - left - right);
  const x = scaleLinear([0, Math.max(1, options.xMax)], [0, plotWidth]);
  const pieces: SVGElement[] = [];
  let top = 4;
  const spans: { top: number; bottom: number }[] = [];
  panels.forEach((panel, index) => {
    const height = panel.height ?? 110;
    const last = index === panels.length - 1;
    pieces.push(svg('text', { x: 0, y: top + 12, 'font-weight': 600 }, panel.title));
    top += 18;
    for (const row of legendRows(panel.series, width)) {
      let at = 0;
      for (const each of row) {
        pieces.push(svg('path', {
          d: `M${at} ${top + 9}h22`, stroke: each.colour, 'stroke-width': 2.2, 'stroke-dasharray': each.dash ?? 'none', fill: 'none',
        }), svg('text', { x: at + 27, y: top + 13 }, each.label));
        at += 34 + 6.8 * each.label.length;
      }
      top += legendLine;
    }
    top += 6;
    const y = verticalScale(panel, height);
    const ticks = panel.ticks ?? (panel.scale === 'log' ? logTicks(y.domain(), height) : y.ticks(Math.max(2, Math.round(height / 34)))
      .filter(tick => !panel.whole || Number.isInteger(tick)));
    const group = svg('g', { transform: `translate(${left} ${top})` });
    for (const tick of ticks) {
      const at = y(tick);
      group.append(svg('path', { d: `M0 ${at}H${plotWidth}`, stroke: 'currentColor', 'stroke-opacity': 0.12, fill: 'none' }),
        svg('text', { x: -7, y: at + 4, 'text-anchor': 'end', 'fill-opacity': 0.8 },
          panel.scale === 'log' ? powerOfTen(tick) : String(Number(tick.toPrecision(6))).replace('-', '−')));
    }
    group.append(svg('path', { d: `M0 0V${height}H${plotWidth}`, stroke: 'currentColor', 'stroke-opacity': 0.5, fill: 'none' }));
    const [low, high] = y.domain() as [number, number];
    for (const each of panel.series) {
      const path = lineOf<number>()
        .defined(i => !Number.isNaN(each.y[i]!))
        .x(i => x(each.x ? each.x[i]! : i))
        .y(i => y(Math.min(high, Math.max(low, each.y[i]!))))(Array.from({ length: each.y.length }, (_, i) => i));
      if (path) {
        group.append(svg('path', {
          d: path, stroke: each.colour, 'stroke-width': 2, 'stroke-dasharray': each.dash ?? 'none', 'stroke-linejoin': 'round', fill: 'none',
        }));
      }
    }
    spans.push({ top, bottom: top + height });
    if (last) {
      for (const tick of x.ticks(Math.max(2, Math.min(8, Math.round(plotWidth / 70)))).filter(Number.isInteger)) {
        group.append(svg('path', { d: `M${x(tick)} ${height}v4`, stroke: 'currentColor', 'stroke-opacity': 0.5 }),
          svg('text', { x: x(tick), y: height + 17, 'text-anchor': 'middle', 'fill-opacity': 0.8 }, String(tick)));
      }
      group.append(svg('text', { x: plotWidth / 2, y: height + 34, 'text-anchor': 'middle' }, options.xLabel));
    }
    pieces.push(group);
    top += height + (last ? axisHeight : panelGap);
  });
  const drawing = emptyFigure(width, top, options.title);
  drawing.append(...pieces);
  if (options.cursor !== undefined) {
    for (const span of spans) {
      drawing.append(svg('path', {
        class: 'cursor', d: `M${left + x(options.cursor)} ${span.top}V${span.bottom}`, stroke: 'currentColor', 'stroke-width': 1.5,
        'stroke-dasharray': '3 3', fill: 'none',
      }));
    }
  }
  const { onPick } = options;
  if (onPick) {
    drawing.style.cursor = 'crosshair';
    drawing.addEventListener('click', event => {
      const box = drawing.getBoundingClientRect();
      const at = (event.clientX - box.left) * (width / box.width) - left;
      if (at >= -4 && at <= plotWidth + 4) onPick(Math.min(options.xMax, Math.max(0, x.invert(at))));
    });
  }
  return drawing;
}
