// Curves over layers or steps as one SVG: panels above each other that share their x axis, a cursor, legends that hide and
// show. Panels are zoomed as in reports: by a box, by Control and the wheel, by keys; a double click shows all.
import { Axis, chosen, drawAxis } from '../kit/axis';
import { linePath } from '../kit/curve';
import { svg } from '../kit/elements';
import { legendPlaces, listenLegend } from '../kit/legend';
import { clamp, plain } from '../kit/numbers';
import { ticks, type Tick } from '../kit/ticks';
import { inside, listenZoom, moved, thinnest, whole, zoomed, type Box, type Spot, type Window } from '../kit/zoom';

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
  ticks?: number[]; // of the whole axis
  whole?: boolean; // ticks at whole numbers only
  series: Series[];
  marks?: { x: number; y: number; colour: string; label: string }[]; // diamonds, as for published values in reports
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
const left = 58,
  right = 24, // half of a label at the end of the axis
  panelGap = 16,
  axisHeight = 40;

export function emptyFigure(width: number, height: number, title: string, fontSize = font): SVGSVGElement {
  const drawing = svg('svg', {
    role: 'img',
    'font-family': 'system-ui, sans-serif',
    'font-size': fontSize,
    fill: 'currentColor',
  });
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

// The ends of a panel's y axis.
function verticalEnds(panel: Panel): [number, number] {
  let low = Infinity,
    high = -Infinity;
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
    if (!(low < high)) return Number.isFinite(low) ? [low - 1, low + 1] : [0, 1];
    if (low === panel.low && high === panel.high) return [low, high];
    // Ends at round values, so that axes rest while curves change a little.
    const power = 10 ** Math.floor(Math.log10((high - low) / 4)),
      step = power * [1, 2, 5, 10].find(factor => factor * power * 4 >= high - low)!;
    return [Math.floor(low / step + 1e-6) * step, Math.ceil(high / step - 1e-6) * step];
  }
  if (!(low <= high)) [low, high] = [0.1, 1];
  low = Math.max(panel.low ?? 1e-17, low);
  return [10 ** Math.floor(Math.log10(low) - 1e-9), 10 ** Math.ceil(Math.log10(Math.max(high, low)) + 1e-9)];
}

interface Drawn {
  box: Box;
  x: Axis;
  y: Axis;
  title: string;
}
let charts = 0;

export function createChart(): { element: SVGSVGElement; draw(options: ChartOptions): void } {
  const drawing = emptyFigure(1, 1, '');
  drawing.setAttribute('role', 'group');
  drawing.setAttribute('tabindex', '0');
  drawing.classList.add('chart');
  const clip = `chart-${++charts}`,
    hidden = new Set<string>(),
    seenY = new Map<string, Window>();
  let seenX = whole,
    panels: Drawn[] = [],
    shown: ChartOptions | undefined;

  function drawPanel(panel: Panel, x: Axis, top: number, last: boolean): { pieces: SVGElement[]; bottom: number } {
    const options = shown!,
      pieces: SVGElement[] = [svg('text', { x: 0, y: top + 12, 'font-weight': 600 }, panel.title)];
    const legend = legendPlaces(
      panel.series.map(({ label }) => label),
      options.width,
      font,
      { sample: 28, gap: 14, line: 19 },
    );
    panel.series.forEach(({ label, colour, dash }, i) => {
      const { x: at, y, width } = legend.places[i]!;
      pieces.push(
        svg(
          'g',
          {
            class: 'entry',
            'data-toggle': label,
            'data-panel': panel.title,
            'aria-pressed': String(!hidden.has(label)),
          },
          svg('rect', {
            x: at - 2,
            y: top + 18 + y,
            width: width + 4,
            height: 18,
            rx: 3,
            fill: 'none',
            'pointer-events': 'all',
          }),
          svg('path', {
            d: `M${at} ${top + 27 + y}h22`,
            stroke: colour,
            'stroke-width': 2.2,
            'stroke-dasharray': dash ?? 'none',
            fill: 'none',
          }),
          svg('text', { x: at + 28, y: top + 31 + y }, label),
        ),
      );
    });
    const box: Box = { x: left, y: top + 18 + legend.height + 6, width: x.to - x.from, height: panel.height ?? 110 },
      bottom = box.y + box.height;
    const ends = verticalEnds(panel),
      y = new Axis(ends, panel.scale === 'log', bottom, box.y);
    y.show(seenY.get(panel.title) ?? whole);
    const given =
      panel.ticks && y.window === whole
        ? panel.ticks.map((value): Tick => ({ value, label: plain(value, 0), width: 0 }))
        : ticks(y, false);
    const up = drawAxis(y, false, box, panel.whole ? given.filter(tick => Number.isInteger(tick.value)) : given);
    pieces.push(
      svg('path', { d: up.grid, stroke: 'currentColor', 'stroke-opacity': 0.12, fill: 'none' }),
      ...up.labels,
      svg('path', {
        d: `M${left} ${box.y}V${bottom}H${x.to}`,
        stroke: 'currentColor',
        'stroke-opacity': 0.5,
        fill: 'none',
      }),
    );
    const lines = panel.series
      .filter(({ label }) => !hidden.has(label))
      .map(({ x: places, y: values, colour, dash }) =>
        svg('path', {
          // What is beyond the ends is drawn on the edge.
          d: linePath(
            Array.from(values, (value, i) => ({ x: places ? places[i]! : i, y: clamp(value, ...ends) })),
            x,
            y,
          ),
          stroke: colour,
          'stroke-width': 2,
          'stroke-dasharray': dash ?? 'none',
          'stroke-linejoin': 'round',
          fill: 'none',
        }),
      );
    const zoomedIn = x.window !== whole || y.window !== whole,
      id = `${clip}-${panels.length}`;
    if (zoomedIn) pieces.push(svg('clipPath', { id }, svg('rect', { ...box })));
    const marks = (panel.marks ?? []).map(mark =>
      svg(
        'path',
        {
          d: 'M0 -6L6 0L0 6L-6 0Z',
          transform: `translate(${x.at(mark.x).toFixed(1)} ${y.at(clamp(mark.y, ...ends)).toFixed(1)})`,
          fill: 'var(--ground)',
          stroke: mark.colour,
          'stroke-width': 2,
          class: 'published-mark',
        },
        svg('title', {}, mark.label),
      ),
    );
    pieces.push(svg('g', { 'clip-path': zoomedIn ? `url(#${id})` : null }, ...lines, ...marks));
    if (last) {
      const along = drawAxis(
        x,
        true,
        box,
        ticks(x, true).filter(tick => Number.isInteger(tick.value)),
      );
      pieces.push(
        ...along.labels,
        svg('text', { x: left + box.width / 2, y: bottom + 34, 'text-anchor': 'middle' }, options.xLabel),
      );
    }
    const cursor = options.cursor === undefined ? NaN : x.at(options.cursor);
    if (cursor >= x.from && cursor <= x.to) {
      pieces.push(
        svg('path', {
          class: 'cursor',
          d: `M${cursor} ${box.y}V${bottom}`,
          stroke: 'currentColor',
          'stroke-width': 1.5,
          'stroke-dasharray': '3 3',
          fill: 'none',
        }),
      );
    }
    panels.push({ box, x, y, title: panel.title });
    return { pieces, bottom };
  }

  function draw(options: ChartOptions): void {
    shown = options;
    panels = [];
    const x = new Axis([0, Math.max(1, options.xMax)], false, left, left + Math.max(80, options.width - left - right));
    x.show(seenX);
    const pieces: SVGElement[] = [];
    let top = 4;
    options.panels.forEach((panel, index) => {
      const last = index === options.panels.length - 1,
        drawn = drawPanel(panel, x, top, last);
      pieces.push(...drawn.pieces);
      top = drawn.bottom + (last ? axisHeight : panelGap);
    });
    const focused = drawing.contains(document.activeElement) ? (document.activeElement as SVGElement).dataset : {};
    resize(drawing, options.width, top, `${options.title}. Plus and minus zoom, zero shows all.`);
    drawing.append(...pieces);
    const entries = [...drawing.querySelectorAll<SVGElement>('.entry')];
    for (const { title } of options.panels) {
      const own = entries.filter(({ dataset }) => dataset.panel === title);
      listenLegend(own, off => {
        for (const { dataset } of own) hidden.delete(dataset.toggle!); // a name is one thing in every panel
        for (const { dataset } of off) hidden.add(dataset.toggle!);
        draw(shown!);
      });
    }
    entries.find(({ dataset }) => dataset.toggle === focused.toggle && dataset.panel === focused.panel)?.focus();
    drawing.style.cursor = 'crosshair';
  }

  const under = ({ x, y }: Spot): Drawn | undefined =>
    panels.find(({ box }) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);
  const show = (x: Window, y: (panel: Drawn) => Window, of: Drawn[]): void => {
    panels[0]!.x.show(x);
    seenX = panels[0]!.x.window;
    for (const panel of of) {
      panel.y.show(y(panel));
      seenY.set(panel.title, panel.y.window);
    }
    draw(shown!);
  };
  const reset = (): void => {
    seenX = whole;
    seenY.clear();
    draw(shown!);
  };
  let dragged = false;
  drawing.addEventListener('pointerdown', () => (dragged = false));
  listenZoom(drawing, drawing, {
    frame: at => under(at)?.box,
    onBox: box => {
      const panel = under({ x: box.x + box.width / 2, y: box.y + box.height / 2 });
      if (panel)
        show(chosen(panel.x, box.x, box.width, thinnest), ({ y }) => chosen(y, box.y, box.height, thinnest), [panel]);
    },
    onWheel: (factor, at) => {
      const panel = under(at)!;
      show(zoomed(panel.x.window, factor, panel.x.place(at.x)), ({ y }) => zoomed(y.window, factor, y.place(at.y)), [
        panel,
      ]);
    },
    onPan: by => {
      if (seenX !== whole) show(moved(seenX, -panels[0]!.x.share(by.x)), ({ y }) => y.window, []);
    },
    onReset: reset,
    onDrag: () => (dragged = true),
  });
  drawing.addEventListener('keydown', event => {
    const factor = { '+': 1.5, '=': 1.5, '-': 1 / 1.5 }[event.key];
    if (event.target !== drawing || event.ctrlKey || event.altKey || event.metaKey || (!factor && event.key !== '0'))
      return;
    event.preventDefault();
    if (factor) show(zoomed(seenX, factor), ({ y }) => zoomed(y.window, factor), panels);
    else reset();
  });
  drawing.addEventListener('click', event => {
    const at = inside(drawing, event);
    if (dragged || (event.target as Element).closest('.entry') || panels.length === 0) return;
    const { x } = panels[0]!;
    if (at.x >= x.from - 4 && at.x <= x.to + 4) shown!.onPick?.(clamp(x.value(at.x), 0, shown!.xMax));
  });
  return { element: drawing, draw };
}
