// A panel of curves: zoomed, with ticks of its own, and read by the pointer and the arrow keys.
import { Axis, chosen, drawAxis } from '../src/kit/axis';
import { bandPath, barsPath, linePath, type CurvePoint } from '../src/kit/curve';
import { svg } from '../src/kit/elements';
import { clamp, short } from '../src/kit/numbers';
import { inside, listenZoom, moved, thinnest, whole, zoomed, type Box, type Window } from '../src/kit/zoom';
import { hideHint, hintAt, say, showHint } from './hint';
import { commanded, numbers, set, type Part } from './parts';

export type Curves = Map<string, CurvePoint[]>;

// The rows of `panel,curve,x,y,low,high`, by panel and curve.
export function curvesOf(rows: string[][]): Map<string, Curves> | null {
  if (rows[0]?.join() !== 'panel,curve,x,y,low,high') return null;
  const panels = new Map<string, Curves>();
  const number = (text: string | undefined): number => (text === '' || text === undefined ? NaN : Number(text));
  for (const [panel, curve, x, y, low, high] of rows.slice(1) as [string, string, ...string[]][]) {
    if (!panels.has(panel)) panels.set(panel, new Map());
    const curves = panels.get(panel)!;
    if (!curves.has(curve)) curves.set(curve, []);
    curves.get(curve)!.push({ x: number(x), y: number(y), low: number(low), high: number(high) });
  }
  return panels;
}

// What an element's curve is called in the rows; the legend's name if that is enough.
const curveOf = ({ dataset }: SVGElement): string | undefined => dataset.curve ?? dataset.name;

const mostTold = 14; // curves in one hint
let clips = 0;

export class Plot implements Part {
  private readonly box: Box;
  private readonly x: Axis;
  private readonly y: Axis;
  private readonly xLabel: string;
  private readonly plot: SVGGElement;
  private readonly drawn: { element: SVGElement; before: string }[];
  private readonly placed: SVGElement[];
  private readonly grid: SVGElement;
  private readonly ticks: SVGElement;
  private readonly before: { grid: string; ticks: ChildNode[] };
  private readonly frame: SVGRectElement;
  private readonly cross: SVGGElement;
  private clip = '';
  private current: number | undefined;

  constructor(
    private readonly panel: SVGGElement,
    private readonly drawing: SVGSVGElement,
    private readonly curves: Curves,
  ) {
    const [left, top, right, bottom] = numbers(panel.dataset.frame) as [number, number, number, number];
    const logs = panel.dataset.log!,
      counts = panel.dataset.whole ?? '',
      ends = (text: string | undefined): [number, number] => numbers(text) as [number, number];
    this.box = { x: left, y: top, width: right - left, height: bottom - top };
    this.x = new Axis(ends(panel.dataset.x), logs.includes('x'), left, right, counts.includes('x'));
    this.y = new Axis(ends(panel.dataset.y), logs.includes('y'), bottom, top, counts.includes('y'));
    this.plot = panel.querySelector('.plot')!;
    this.drawn = [...this.plot.querySelectorAll<SVGElement>('.line, .band, .bars')].map(element => ({
      element,
      before: element.getAttribute('d')!,
    }));
    this.placed = [...this.plot.querySelectorAll<SVGElement>('.dot, .mark')];
    this.grid = panel.querySelector('.grid')!;
    this.ticks = panel.querySelector('.ticks')!;
    this.before = { grid: this.grid.getAttribute('d')!, ticks: [...this.ticks.childNodes] };
    panel.querySelector('.hints')?.remove(); // the crosshair tells more than the single points did
    const [xLabel, yLabel] = panel.dataset.axes!.split('\n');
    this.xLabel = xLabel || 'x';
    this.frame = svg('rect', {
      class: 'frame',
      ...this.box,
      fill: 'none',
      'pointer-events': 'all',
      tabindex: 0,
      role: 'application',
      'aria-label':
        `${panel.dataset.title || 'Chart'}: ${yLabel || 'y'} over ${this.xLabel}. Left and right arrow keys ` +
        'read values, plus and minus zoom, zero shows all.',
    });
    this.plot.before(this.frame);
    this.cross = svg('g', { class: 'cross', display: 'none' });
    panel.append(this.cross);
    this.listen();
  }

  private visible(): [string, CurvePoint[]][] {
    const hidden = new Set<string | undefined>();
    for (const { element } of this.drawn) if (element.hasAttribute('display')) hidden.add(curveOf(element));
    for (const element of this.placed) {
      if (element.hasAttribute('display') && element.classList.contains('dot')) hidden.add(curveOf(element));
    }
    return [...this.curves].filter(([name]) => !name.startsWith('published: ') && !hidden.has(name));
  }

  private within({ x, y }: { x: number; y: number }, slack: number): boolean {
    const { box } = this;
    return (
      x >= box.x - slack && x <= box.x + box.width + slack && y >= box.y - slack && y <= box.y + box.height + slack
    );
  }

  private listen(): void {
    const { panel, frame, drawing, x, y } = this;
    const zoom = listenZoom(panel, drawing, {
      frame: at => (this.within(at, 0) ? this.box : undefined),
      onBox: box => this.show(chosen(x, box.x, box.width, thinnest), chosen(y, box.y, box.height, thinnest)),
      onWheel: (factor, at) =>
        this.show(zoomed(x.window, factor, x.place(at.x)), zoomed(y.window, factor, y.place(at.y))),
      onPan: by => this.show(moved(x.window, -x.share(by.x)), moved(y.window, -y.share(by.y))),
      onReset: () => this.reset(),
      onDrag: hideHint,
    });
    panel.addEventListener('pointermove', event => {
      if (zoom.dragging()) return;
      const at = inside(drawing, event);
      if (!this.within(at, 2)) return this.leave();
      // A published value tells its own story.
      const story = (event.target as SVGElement).dataset.hint;
      if (story) showHint(story, event.clientX, event.clientY);
      else this.point(at.x, event);
    });
    panel.addEventListener('pointerleave', () => this.leave());
    frame.addEventListener('blur', () => this.leave());
    const keys: Record<string, () => void> = {
      '+': () => this.zoom(1.5),
      '=': () => this.zoom(1.5),
      '-': () => this.zoom(1 / 1.5),
      0: () => this.reset(),
      Escape: () => this.leave(),
      ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1),
      Home: () => this.step(-Infinity),
      End: () => this.step(Infinity),
    };
    frame.addEventListener('keydown', event => {
      const act = keys[event.key];
      if (!act || commanded(event)) return;
      event.preventDefault();
      act();
    });
  }

  private leave(): void {
    hideHint();
    this.cross.setAttribute('display', 'none');
  }

  // Values of every curve at the x nearest to a pixel.
  private point(pixel: number, event: PointerEvent): void {
    const curves = this.visible();
    let best = NaN,
      distance = Infinity;
    for (const [, points] of curves) {
      for (const { x, y } of points) {
        if (!this.x.shows(x) || !this.y.shows(y)) continue;
        const away = Math.abs(this.x.at(x) - pixel);
        if (away < distance) [best, distance] = [x, away];
      }
    }
    if (Number.isFinite(best)) this.read(best, curves, event);
  }

  private read(x: number, curves: [string, CurvePoint[]][], event?: PointerEvent): string {
    const values: { name: string; point: CurvePoint }[] = [];
    for (const [name, points] of curves) {
      const point = points.find(each => each.x === x && this.y.shows(each.y));
      if (point) values.push({ name, point });
    }
    values.sort((a, b) => b.point.y - a.point.y);
    const lines = values.map(
      ({ name, point }) =>
        `${name}: ${short(point.y)}` +
        (Number.isFinite(point.low) && Number.isFinite(point.high)
          ? ` [${short(point.low)} … ${short(point.high)}]`
          : ''),
    );
    if (lines.length > mostTold) lines.splice(mostTold, Infinity, `… and ${values.length - mostTold} more`);
    const text = `${this.xLabel} ${Number(x.toPrecision(8))}\n${lines.join('\n')}`;
    const at = this.x.at(x),
      { box } = this,
      bottom = box.y + box.height;
    this.cross.replaceChildren();
    this.cross.removeAttribute('display');
    if (at >= box.x - 1 && at <= box.x + box.width + 1) {
      this.cross.append(
        svg('path', {
          d: `M${at} ${box.y}V${bottom}`,
          stroke: 'currentColor',
          'stroke-opacity': 0.5,
          'stroke-dasharray': '3 3',
        }),
      );
      for (const { point } of values) {
        const y = this.y.at(point.y);
        if (y < box.y || y > bottom) continue;
        this.cross.append(
          svg('circle', { cx: at, cy: y, r: 3.5, fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 }),
        );
      }
    }
    if (event) showHint(text, event.clientX, event.clientY);
    else hintAt(this.drawing, text, clamp(at, box.x, box.x + box.width), box.y + 20);
    this.current = x;
    return text;
  }

  // To the next x that a visible curve has, in sight.
  private step(count: number): void {
    const curves = this.visible(),
      all = new Set<number>();
    for (const [, points] of curves) {
      for (const { x, y } of points) {
        if (!this.x.shows(x) || !this.y.shows(y)) continue;
        const at = this.x.at(x);
        if (at >= this.box.x - 0.5 && at <= this.box.x + this.box.width + 0.5) all.add(x);
      }
    }
    const sorted = [...all].sort((a, b) => a - b),
      { current } = this;
    if (!sorted.length) return say('Nothing is shown here.');
    let index = current === undefined ? -1 : sorted.findIndex(x => x >= current);
    if (index < 0) index = count > 0 && current === undefined ? -1 : sorted.length - 1;
    say(this.read(sorted[clamp(index + count, 0, sorted.length - 1)]!, curves));
  }

  zoom(factor: number): void {
    this.show(zoomed(this.x.window, factor), zoomed(this.y.window, factor));
  }

  reset(): void {
    this.show(whole, whole);
  }

  private show(x: Window, y: Window): void {
    this.x.show(x);
    this.y.show(y);
    this.draw();
  }

  private draw(): void {
    const { x, y, panel, plot } = this;
    this.leave();
    if (x.window === whole && y.window === whole) {
      for (const { element, before } of this.drawn) element.setAttribute('d', before);
      for (const element of this.placed) element.removeAttribute('transform');
      plot.removeAttribute('clip-path');
      this.grid.setAttribute('d', this.before.grid);
      this.ticks.replaceChildren(...this.before.ticks);
      panel.removeAttribute('data-zoomed');
      return;
    }
    panel.dataset.zoomed = '1';
    if (!this.clip) {
      const id = `clip-${++clips}`;
      panel.prepend(svg('clipPath', { id }, svg('rect', { ...this.box })));
      this.clip = `url(#${id})`;
    }
    plot.setAttribute('clip-path', this.clip);
    for (const { element } of this.drawn) {
      const points = this.curves.get(curveOf(element)!),
        kind = element.classList;
      if (!points) continue;
      const path = kind.contains('line') ? linePath : kind.contains('band') ? bandPath : barsPath;
      element.setAttribute('d', path(points, x, y));
    }
    for (const element of this.placed) {
      const by = (axis: Axis, value: number): string => (axis.at(value) - axis.wholeAt(value)).toFixed(1);
      element.setAttribute(
        'transform',
        `translate(${by(x, Number(element.dataset.x))} ${by(y, Number(element.dataset.y))})`,
      );
    }
    const across = drawAxis(x, true, this.box),
      up = drawAxis(y, false, this.box);
    set(this.grid, { d: across.grid + up.grid || 'M0 0' });
    this.ticks.replaceChildren(...across.labels, ...up.labels);
  }
}
