// Keys in the plane with fixed axes: their shadows on the query, or their hull and, on a ring around them, who owns which
// direction.
import { arcPath, html, svg } from '../kit/elements';
import { keyColour, listed, nameOf, stateOf, type Stage } from './stage';
import { marker } from './space';

const size = 460,
  centre = size / 2,
  ringInner = 205,
  ringOuter = 222;

interface PlaneOptions {
  id: string;
  label: string;
  extent: number; // of what is shown, to either side
  query?: (query: number[]) => void;
  shadows?: boolean;
  fan?: boolean;
  hull?: boolean;
  onesLine?: boolean; // the line orthogonal to 1, and the two points on it
}
export interface PlaneView {
  element: HTMLElement;
  draw(stage: Stage, query: number[], before?: number[][]): void;
}

export function createPlane(options: PlaneOptions): PlaneView {
  const radius = options.fan ? 196 : 222,
    unit = radius / options.extent;
  const body = svg('g'),
    points = svg('g');
  const tip = svg('g', {
    class: 'query-tip',
    tabindex: '0',
    role: 'slider',
    'aria-label': 'Query: arrow keys turn it, with Shift further',
    'aria-valuemin': '0',
    'aria-valuemax': '360',
    'data-testid': `${options.id}-query`,
  });
  const figure = svg(
    'svg',
    {
      viewBox: `0 0 ${size} ${size}`,
      class: 'plane-figure',
      role: 'group',
      'aria-label': options.label,
      'data-testid': `${options.id}-figure`,
    },
    body,
    points,
    options.query ? tip : null,
  );
  const place = (point: readonly number[]): [number, number] => [centre + unit * point[0]!, centre - unit * point[1]!];
  const line = (from: readonly number[], to: readonly number[], attributes: Record<string, string>): SVGElement => {
    const [x1, y1] = place(from),
      [x2, y2] = place(to);
    return svg('line', { x1, y1, x2, y2, ...attributes });
  };
  let query: number[] = [1, 0];

  if (options.query) {
    const tell = options.query;
    let held = false;
    tip.addEventListener('pointerdown', event => {
      event.preventDefault();
      tip.focus();
      tip.setPointerCapture(event.pointerId);
      held = true;
    });
    tip.addEventListener('pointermove', event => {
      if (!held) return;
      const box = figure.getBoundingClientRect();
      const x = event.clientX - box.left - box.width / 2,
        y = -(event.clientY - box.top - box.height / 2);
      if (x !== 0 || y !== 0) tell([x / Math.hypot(x, y), y / Math.hypot(x, y)]);
    });
    for (const end of ['pointerup', 'pointercancel'] as const) tip.addEventListener(end, () => (held = false));
    tip.addEventListener('keydown', event => {
      const step = { ArrowLeft: 1, ArrowUp: 1, ArrowRight: -1, ArrowDown: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const by = (step * (event.shiftKey ? 10 : 2) * Math.PI) / 180,
        [x, y] = query as [number, number];
      tell([x * Math.cos(by) - y * Math.sin(by), x * Math.sin(by) + y * Math.cos(by)]);
    });
  }

  function drawAxes(): SVGElement[] {
    const end = options.extent;
    return [
      line([-end, 0], [end, 0], { class: 'axis' }),
      line([0, -end], [0, end], { class: 'axis' }),
      ...Array.from({ length: Math.floor(end) }, (_, i) => i + 1).map(value =>
        svg(
          'text',
          { x: place([value, 0])[0], y: centre + 14, class: 'axis-name', 'text-anchor': 'middle' },
          String(value),
        ),
      ),
    ];
  }

  function drawFan({ arcs }: Stage): SVGElement[] {
    const ring = svg('path', { d: arcPath(centre, centre, ringInner, ringOuter, 0, 2 * Math.PI), class: 'ring' });
    return [
      ring,
      ...arcs.flatMap(arc =>
        arc.keys.map((key, i) => {
          const depth = (ringOuter - ringInner) / arc.keys.length;
          return svg(
            'path',
            {
              d: arcPath(centre, centre, ringInner + i * depth, ringInner + (i + 1) * depth, arc.from, arc.to),
              fill: keyColour(key),
              class: 'arc',
              'data-key': String(key + 1),
              'data-testid': `${options.id}-arc-${key + 1}`,
              'data-width': String(arc.to - arc.from),
            },
            svg('title', {}, `${nameOf(key)} wins here`),
          );
        }),
      ),
    ];
  }

  function drawShadows({ keys, shadows }: Stage): SVGElement[] {
    const far = query.map(value => value * options.extent);
    return [
      line(
        far.map(value => -value),
        far,
        { class: 'query-ground' },
      ),
      ...keys.flatMap((key, i) => [
        line(key, shadows[i]!, { class: 'drop', stroke: keyColour(i), 'data-key': String(i + 1) }),
        svg('circle', {
          cx: place(shadows[i]!)[0],
          cy: place(shadows[i]!)[1],
          r: 5,
          class: 'shadow',
          fill: keyColour(i),
          'data-key': String(i + 1),
        }),
      ]),
    ];
  }

  function drawHull({ keys, edges }: Stage): SVGElement[] {
    if (edges.length < 3) return edges.map(([from, to]) => line(keys[from]!, keys[to]!, { class: 'hull-edge' }));
    return [svg('polygon', { points: edges.map(([key]) => place(keys[key]!).join(',')).join(' '), class: 'hull' })];
  }

  // Keys that stand at one place, up to rounding, are named together beside it.
  function drawTogether({ keys, set }: Stage): SVGElement[] {
    const sides = [1, -1].map(side => keys.flatMap((key, i) => (Math.sign(key[0]!) === side ? [i] : [])));
    if (set.keys.every(key => stateOf(key) === 'selectable' || stateOf(key) === 'unselectable')) return [];
    return sides
      .filter(side => side.length > 0)
      .map(side => {
        const [x, y] = place(keys[side[0]!]!);
        return svg(
          'text',
          { x: x + (x > centre ? -6 : 6), y: y + (x > centre ? 34 : -24), class: 'tie-name', 'text-anchor': 'middle' },
          `${listed(side)}: ${side.every(i => stateOf(set.keys[i]!) === 'tied') ? 'tied' : 'tied up to rounding'}`,
        );
      });
  }

  function draw(stage: Stage, asked: number[], before?: number[][]): void {
    query = asked;
    const pieces = drawAxes();
    if (options.fan) pieces.push(...drawFan(stage));
    if (options.onesLine) {
      const end = 0.7 * options.extent;
      pieces.push(
        line([-end, end], [end, -end], { class: 'plane-line' }),
        line([-end, -end], [end, end], { class: 'ones' }),
        svg('text', { x: place([end, end])[0] + 6, y: place([end, end])[1] + 2, class: 'ones-name' }, '1'),
      );
    }
    if (options.hull) pieces.push(...drawHull(stage));
    before?.forEach((from, i) => {
      const [x, y] = place(from);
      pieces.push(
        line(from, stage.keys[i]!, { class: 'trail', stroke: keyColour(i) }),
        svg('circle', { cx: x, cy: y, r: 3.5, class: 'was', stroke: keyColour(i) }),
      );
    });
    if (options.shadows) pieces.push(...drawShadows(stage));
    if (options.query) {
      const length = options.fan ? ringInner / unit : 0.92 * options.extent,
        [x, y] = place(query.map(value => value * length));
      if (options.fan) pieces.push(svg('line', { x1: centre, y1: centre, x2: x, y2: y, class: 'query-line' }));
      const degrees = (Math.atan2(query[1]!, query[0]!) * 180) / Math.PI;
      tip.setAttribute('transform', `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      tip.setAttribute('aria-valuenow', ((degrees + 360) % 360).toFixed(0));
      tip.setAttribute('aria-valuetext', `${nameOf(stage.ranks.indexOf(1))} has the highest score`);
      tip.replaceChildren(
        svg('circle', { r: 20, class: 'grip' }),
        svg('path', { d: 'M10 0L-9 -8L-5 0L-9 8Z', transform: `rotate(${(-degrees).toFixed(0)})`, class: 'arrow' }),
        svg('text', { x: 10, y: -10, class: 'query-name' }, 'q'),
      );
    }
    if (options.onesLine) pieces.push(...drawTogether(stage));
    body.replaceChildren(...pieces);
    points.replaceChildren(...stage.keys.map((key, i) => marker(i, ...place(key), stateOf(stage.set.keys[i]!), 12)));
  }
  return { element: html('div', { class: 'plane-room' }, figure), draw };
}
